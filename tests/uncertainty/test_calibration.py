"""Expected calibration error."""

import pytest
import torch

from epigrok.random_streams import stream_key, uniform
from epigrok.uncertainty import calibration_error, reliability_counts


def test_calibration_error_equals_a_loop_over_bins() -> None:
    confidence = uniform(stream_key(0, "confidence"), (2000, 1)).double()
    correct = uniform(stream_key(0, "correct"), (2000, 1)) < confidence
    counts = reliability_counts(confidence, correct, torch.ones_like(correct))
    expected = 0.0
    for k in range(15):
        upper = 1.01 if k == 14 else (k + 1) / 15
        inside = (confidence >= k / 15) & (confidence < upper)
        if inside.any():
            gap = correct[inside].double().mean() - confidence[inside].mean()
            expected += inside.double().mean().item() * abs(gap.item())
    assert calibration_error(counts)[0].item() == pytest.approx(expected)


def test_confidence_of_exactly_one_falls_into_the_last_bin() -> None:
    confidence = torch.tensor([[1.0], [1.0], [0.95], [0.95]], dtype=torch.float64)
    correct = torch.tensor([[True], [False], [True], [True]])
    counts = reliability_counts(confidence, correct, torch.ones_like(correct))
    # One bin: accuracy 3/4, mean confidence 0.975.
    assert calibration_error(counts)[0].item() == pytest.approx(0.225)


def test_columns_are_counted_apart_and_what_is_not_asked_nowhere() -> None:
    confidence = torch.tensor([[0.5, 0.9], [0.5, 0.1]], dtype=torch.float64)
    correct = torch.tensor([[True, False], [False, True]])
    counts = reliability_counts(confidence, correct, torch.tensor([[True, True], [True, False]]))
    assert counts.sum(dim=-1).tolist() == [[2, 1], [1, 0], [1.0, 0.9]]
    assert calibration_error(counts).tolist() == pytest.approx([0.0, 0.9])
