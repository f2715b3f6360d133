"""Which predictions a look reads, of models that answer once or at every position."""

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from epigrok.errors import UserError
from epigrok.monitor import (
    GrokMonitor,
    MonitorSettings,
    ToleranceSettings,
    network_answers,
    tolerance,
)
from epigrok.monitor.noise import NoisyNetwork
from epigrok.monitor.sets.set_rows import Answered, ModelCall, SetRows, chosen_rows
from epigrok.monitor.sets.taking import taken


def test_one_answer_per_input_is_one_row_each() -> None:
    everything = torch.ones(10, dtype=torch.bool)
    assert chosen_rows(everything, "all", 100).tolist() == list(range(10))
    assert chosen_rows(everything, "last", 100).tolist() == list(range(10))


def test_the_last_answer_is_the_last_that_counts() -> None:
    is_counted = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]]).bool()
    assert chosen_rows(is_counted, "last", 100).tolist() == [2, 4, 15]


def test_positions_are_spread_over_all_sequences() -> None:
    is_counted = torch.ones(20, 7, dtype=torch.bool)
    is_counted[:, 5:] = False
    assert len(chosen_rows(is_counted, "all", 1000)) == 100
    rows = chosen_rows(is_counted, "all", 40)
    assert torch.bincount(rows // 7).tolist() == 20 * [2]
    assert len(set((rows % 7).tolist())) == 5
    assert torch.equal(rows, chosen_rows(is_counted, "all", 40))


class PerPosition(nn.Module):
    """Answers at every position, and counts how often it was called."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.head = nn.Linear(3, 16), nn.Linear(16, 5)
        self.num_outputs = 5

    def forward(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        return self.head(self.first(x).relu())[..., : self.num_outputs]


def model_and_inputs() -> tuple[PerPosition, Tensor]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return PerPosition(), torch.randn(90, 4, 3)


def test_features_are_those_of_the_chosen_positions_and_padding_is_not_read() -> None:
    model, x = model_and_inputs()
    mask = torch.ones(90, 4, dtype=torch.long)
    mask[:, 2:] = 0
    rows = SetRows(taken({"x": x, "attention_mask": mask}, "seen", 90), "last", 90)
    found = rows.head_inputs(ModelCall(model=model))
    torch.testing.assert_close(found.logits(), model(x)[:, 1])


class TinyForCausalLM(nn.Module):
    """Called as those of Transformers are, so a label belongs one place earlier."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.head = nn.Embedding(7, 6), nn.Linear(6, 7)

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.head(self.embedding(input_ids))


@pytest.mark.parametrize("answered", ["all", "last"])
def test_positions_without_a_label_are_no_rows(answered: Answered) -> None:
    """Nobody trains the answers that stand there, so they say nothing of what was learnt."""
    tokens = torch.arange(90 * 4).view(90, 4) % 7
    labels = tokens.masked_fill(torch.tensor([True, True, True, False]), -100)
    model = TinyForCausalLM()
    rows = SetRows(taken({"input_ids": tokens, "labels": labels}, "seen", 90), answered, 90)
    found = rows.head_inputs(ModelCall(model=model))
    torch.testing.assert_close(found.logits(), model(tokens)[:, 2])
    assert rows.is_row_per_input
    network = SetRows(taken({"input_ids": tokens, "labels": labels}, "seen", 90), answered, 90)
    assert torch.equal(network.own_logits(ModelCall(model=model)), model(tokens)[:, 2])


def test_labels_of_another_output_leave_the_rows_alone() -> None:
    model, x = model_and_inputs()
    labels = torch.full((90, 9), -100)
    rows = SetRows(taken(TensorDataset(x, labels), "seen", 90), "last", 90)
    found = rows.head_inputs(ModelCall(model=model))
    torch.testing.assert_close(found.logits(), model(x)[:, -1])


def test_batches_are_read_one_by_one() -> None:
    model, x = model_and_inputs()
    whole = SetRows(taken(x, "seen", 90), "last", 90).head_inputs(ModelCall(model=model))
    parts = taken([x[:50], x[50:]], "seen", 90)
    found = SetRows(parts, "last", 90).head_inputs(ModelCall(model=model))
    torch.testing.assert_close(found.features_ND, whole.features_ND)


def test_noise_on_the_whole_network_reads_the_same_rows() -> None:
    model, x = model_and_inputs()
    rows, settings = SetRows(taken(x, "seen", 90), "last", 90), ToleranceSettings()
    call = ModelCall(model=model)
    rows.head_inputs(call)
    found = rows.network_tolerance(call, NoisyNetwork(model, settings), settings)
    plain = network_answers(model.eval(), x[:, -1], settings)
    expected = tolerance(plain, 5, settings)
    assert abs(found.value / expected.value - 1.0) < 0.25 * expected.log_standard_error


def test_a_model_whose_output_changes_its_shape_is_noticed() -> None:
    model, x = model_and_inputs()
    rows, call = SetRows(taken(x, "seen", 90), "all", 90), ModelCall(model=model)
    rows.head_inputs(call)
    model.head = nn.Linear(16, 6)
    model.num_outputs = 6
    with pytest.raises(UserError, match=r"shape \[90, 4, 6\], and \[90, 4, 5\] before"):
        rows.head_inputs(call)


def test_sequences_that_a_model_flattens_have_no_row_each() -> None:
    model, x = model_and_inputs()
    x = x.repeat(3, 1, 1)[:256]
    for forward, has_own in ((None, False), (lambda model, x: model(x).flatten(0, 1), False),
                             (lambda model, x: model(x)[:, -1], True)):  # fmt: skip
        rows = SetRows(taken(x, "seen", 256), "all", 256)
        rows.head_inputs(ModelCall(model=model, forward=forward))
        assert rows.is_row_per_input == has_own


@pytest.mark.parametrize("noise_on", ["head", "network"])
def test_inputs_follow_a_model_into_another_precision_and_back(noise_on: str) -> None:
    model, x = model_and_inputs()
    settings = MonitorSettings(noise_on=noise_on, answered="last")  # type: ignore[arg-type]
    monitor = GrokMonitor(model, x, {"held out": x + 1.0}, settings=settings)
    saved, before = monitor.state_dict(), monitor.update(1)["held out"].tolerance
    for step, dtype in enumerate((torch.bfloat16, torch.float64, torch.float32), start=2):
        model.to(dtype)
        found = monitor.update(step)["held out"].tolerance
    # Its weights were rounded on the way.
    assert found == pytest.approx(before, rel=0.3)
    assert monitor.state_dict()["inputs"] == saved["inputs"]
