"""The entropy decomposition against 250-digit arithmetic, and its bounds."""

import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from epigrok.errors import UserError
from epigrok.random_streams import normal, stream_key
from epigrok.uncertainty import EntropyStream, decompose, log_probabilities

mpmath.mp.dps = 250


def exact(logits_SC: Tensor) -> tuple[float, float, float]:
    """Total, aleatoric and epistemic uncertainty of one prediction, to 250 digits."""
    samples = []
    for row in logits_SC.double().tolist():
        weights = [mpmath.e ** mpmath.mpf(value) for value in row]
        samples.append([weight / mpmath.fsum(weights) for weight in weights])

    def entropy(probs: list[mpmath.mpf]) -> mpmath.mpf:
        return -mpmath.fsum(p * mpmath.log(p) for p in probs if p)

    mean = [mpmath.fsum(column) / len(samples) for column in zip(*samples)]
    total = entropy(mean)
    aleatoric = mpmath.fsum(entropy(probs) for probs in samples) / len(samples)
    return float(total), float(aleatoric), float(total - aleatoric)


def streamed(logits_SC: Tensor) -> tuple[float, float, float]:
    stream = EntropyStream()
    for logits_C in logits_SC:
        stream.add(log_probabilities(logits_C[None]))
    parts = stream.decomposition()
    return parts.total.item(), parts.aleatoric.item(), parts.epistemic.item()


def noise(shape: tuple[int, ...], counter: int = 0) -> Tensor:
    return normal(stream_key(0, "test"), shape, counter)


def saturated() -> Tensor:
    """Confidence 1 - 1e-12, and some more extreme, with slightly different samples."""
    logits = 0.3 * noise((16, 29))
    logits[:, 3] += 31.0
    return logits


CASES = {
    "ordinary": noise((16, 29)),
    "saturated": saturated(),
    "saturated beyond 1e-30": saturated() + 50.0 * (torch.arange(29) == 3),
    "nearly equal": noise((1, 29), 1) + 1e-4 * noise((16, 29), 2).double(),
    "nearly equal and saturated": saturated()[:1] + 1e-4 * noise((16, 29), 3).double(),
    "disagreeing with certainty": 200.0 * torch.eye(29)[:16],
    "disagreeing beyond what float64 holds": 2000.0 * torch.eye(29)[:16],
    "a first sample unlike the others": torch.cat([80.0 * noise((1, 29), 4), noise((15, 29), 5)]),
    "two samples": noise((2, 29), 6),
}


@pytest.mark.parametrize("case", CASES)
def test_all_parts_are_right_to_ten_digits(case: str) -> None:
    for ours, true in zip(streamed(CASES[case]), exact(CASES[case])):
        assert ours == pytest.approx(true, rel=1e-10, abs=1e-100)


@pytest.mark.parametrize("case", ["nearly equal", "nearly equal and saturated"])
def test_the_float32_difference_of_entropies_fails_where_this_succeeds(case: str) -> None:
    logits = CASES[case]
    probs = logits.float().softmax(-1)

    def entropy(p: Tensor) -> Tensor:
        return -(p * p.log()).sum(-1)

    naive = (entropy(probs.mean(0)) - entropy(probs).mean()).item()
    true = exact(logits)[2]
    assert abs(naive - true) > 0.5 * true
    assert streamed(logits)[2] == pytest.approx(true, rel=1e-10)


def test_streaming_equals_all_at_once() -> None:
    probs = noise((16, 50, 29)).double().softmax(-1)
    parts = decompose(probs)
    mean = probs.mean(0)
    total = torch.special.entr(mean).sum(-1)
    aleatoric = torch.special.entr(probs).sum(-1).mean(0)
    torch.testing.assert_close(parts.total, total, rtol=0, atol=1e-12)
    torch.testing.assert_close(parts.aleatoric, aleatoric, rtol=0, atol=1e-12)
    torch.testing.assert_close(parts.epistemic, total - aleatoric, rtol=0, atol=1e-12)


@settings(max_examples=200)
@given(
    st.integers(1, 8).flatmap(
        lambda s: st.lists(
            st.lists(st.floats(-300, 300, width=32), min_size=3, max_size=3),
            min_size=s,
            max_size=s,
        )
    )
)
def test_parts_add_up_and_stay_in_bounds(logits: list[list[float]]) -> None:
    total, aleatoric, epistemic = streamed(torch.tensor(logits, dtype=torch.float32))
    assert total == pytest.approx(aleatoric + epistemic, abs=1e-14)
    assert 0.0 <= epistemic <= math.log(len(logits)) + 1e-15
    assert 0.0 <= aleatoric <= math.log(3) + 1e-12
    assert total <= math.log(3) + 1e-12


def test_one_sample_has_no_epistemic_uncertainty() -> None:
    parts = decompose(noise((1, 5, 7)).double().softmax(-1))
    assert (parts.epistemic == 0).all()
    assert torch.equal(parts.total, parts.aleatoric)


def test_equal_samples_have_none_and_certain_disagreement_has_log_s() -> None:
    probs = noise((1, 4, 7)).double().softmax(-1).repeat(5, 1, 1)
    assert (decompose(probs).epistemic == 0).all()
    one_hot = torch.eye(7, dtype=torch.float64)[:5, None]
    parts = decompose(one_hot)
    assert parts.epistemic.item() == pytest.approx(math.log(5), rel=1e-14)
    assert parts.aleatoric.item() == 0.0


def test_the_correction_removes_the_bias_of_few_samples() -> None:
    base = noise((1, 1, 29))
    many = decompose((base + 0.05 * noise((4096, 1, 29), 1)).double().softmax(-1)).epistemic
    draws = [
        decompose((base + 0.05 * noise((4, 1, 29), 2 + k)).double().softmax(-1)) for k in range(300)
    ]
    plug_in = torch.stack([parts.epistemic for parts in draws]).mean()
    corrected = torch.stack([parts.epistemic_corrected for parts in draws]).mean()
    assert plug_in / many == pytest.approx(0.75, abs=0.02)
    assert corrected / many == pytest.approx(1.0, abs=0.025)


def test_what_is_not_a_distribution_is_refused() -> None:
    with pytest.raises(UserError, match="sum to one"):
        decompose(torch.ones(2, 3, 4))
    with pytest.raises(UserError, match="non-negative"):
        decompose(torch.tensor([[[1.5, -0.5]]]))


def test_impossible_classes_contribute_nothing() -> None:
    probs = torch.tensor([[[0.5, 0.5, 0.0]], [[1.0, 0.0, 0.0]]], dtype=torch.float64)
    parts = decompose(probs)
    assert parts.aleatoric.item() == pytest.approx(math.log(2) / 2)
    mean = [0.75, 0.25]
    assert parts.total.item() == pytest.approx(-sum(p * math.log(p) for p in mean))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_probabilities_may_be_rounded_to_their_type(dtype: torch.dtype) -> None:
    probs = torch.randn(4, 10, 29, generator=torch.Generator().manual_seed(0)).softmax(-1)
    coarse, fine = decompose(probs.to(dtype)), decompose(probs.double())
    torch.testing.assert_close(coarse.total, fine.total, rtol=0.02, atol=0.0)
    with pytest.raises(UserError, match="sum to one"):
        decompose((1.05 * probs).to(dtype))
    many = torch.randn(2, 5, 5000, generator=torch.Generator().manual_seed(1)).to(dtype)
    decompose(many.softmax(-1))


def test_predictions_without_samples_are_refused() -> None:
    with pytest.raises(UserError, match="samples first and classes last"):
        decompose(torch.full((0, 3, 4), 0.25))


def test_arrays_lists_and_certain_votes_are_taken_too() -> None:
    votes = [[[1, 0, 0]], [[0, 1, 0]]]
    for probs in (votes, np.array(votes, dtype=np.float32), torch.tensor(votes, dtype=torch.bool)):
        assert decompose(probs).epistemic.item() == pytest.approx(math.log(2))
    for wrong in ([[["a"]]], [[0.5], [0.5, 0.5]], torch.ones(1, 1, 1) * 1j):
        with pytest.raises(UserError, match="probabilities must be"):
            decompose(wrong)


def test_rounded_probabilities_are_normalised() -> None:
    uniform = torch.full((1, 1, 31), 1 / 31, dtype=torch.bfloat16)
    assert decompose(uniform).total.item() == pytest.approx(math.log(31))


def test_a_logit_of_minus_infinity_is_an_impossible_class() -> None:
    stream = EntropyStream()
    for logits in ([0.0, 0.0, -math.inf], [-math.inf, 0.0, 0.0]):
        stream.add(log_probabilities(torch.tensor([logits])))
    parts = stream.decomposition()
    assert parts.aleatoric.item() == pytest.approx(math.log(2))
    assert parts.total.item() == pytest.approx(1.5 * math.log(2))
