"""Every metric against a plain computation, and the corner where confidence is exactly one."""

import math

import pytest
import torch

from epigrok.evaluation import score
from epigrok.random_streams import integers, normal, stream_key
from epigrok.tasks import Batch


def random_batch(num_sequences: int, num_answers: int, num_classes: int) -> Batch:
    answers = integers(stream_key(0, "answers"), num_classes, (num_sequences, num_answers))
    tokens = answers.repeat_interleave(3, dim=1)
    return Batch(tokens, answers, torch.ones_like(answers, dtype=torch.bool))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_perfect_predictor_scores_exactly_one(dtype: torch.dtype) -> None:
    batch = random_batch(1000, 32, 29)
    logits = 30.0 * torch.nn.functional.one_hot(batch.answers_BT, 29).to(dtype)
    summary = score([logits], batch).summary()
    assert summary["accuracy"] == 1.0
    assert summary["accuracy_final"] == 1.0
    assert summary["nll"] < 1e-11


def test_metrics_equal_plain_computations() -> None:
    batch = random_batch(300, 4, 7)
    samples = [2.0 * normal(stream_key(0, "logits"), (300, 4, 7), k) for k in range(5)]
    scores = score(samples, batch)
    probs = torch.stack([s.double().softmax(-1) for s in samples]).mean(0)
    answer = probs.gather(-1, batch.answers_BT[..., None])[..., 0]
    correct = (probs.argmax(-1) == batch.answers_BT).double()
    one_hot = torch.nn.functional.one_hot(batch.answers_BT, 7)
    brier = (probs - one_hot).square().sum(-1)
    per_length = scores.per_context_length()
    for name, values in {"accuracy": correct, "nll": -answer.log(), "brier": brier}.items():
        torch.testing.assert_close(per_length[name], values.mean(0))
        assert scores.summary()[name] == pytest.approx(values.mean().item())
        assert scores.summary()[f"{name}_final"] == pytest.approx(values[:, -1].mean().item())
    entropy = -(probs * probs.log()).sum(-1)
    assert scores.summary()["total"] == pytest.approx(entropy.mean().item())
    epistemic = scores.values_BT["epistemic"]
    assert scores.summary()["epistemic_corrected"] == pytest.approx(epistemic.mean().item() * 5 / 4)


@pytest.mark.parametrize("name", ["total", "aleatoric", "epistemic"])
def test_standard_errors_are_over_rows(name: str) -> None:
    batch = random_batch(300, 4, 7)
    scores = score([normal(stream_key(0, "logits"), (300, 4, 7), k) for k in range(5)], batch)
    values = scores.values_BT[name]
    error, summary = values.std(0) / math.sqrt(300), scores.summary()
    torch.testing.assert_close(scores.per_context_length()[f"{name}_se"], error)
    assert summary[f"{name}_se_final"] == pytest.approx(error[-1].item())
    assert summary[f"{name}_se"] == pytest.approx((values.mean(1).std() / math.sqrt(300)).item())
    single = score([torch.zeros(1, 4, 7)] * 2, random_batch(1, 4, 7)).summary()
    assert f"{name}_se" not in single
    assert f"{name}_se_final" not in single


def test_answers_that_are_not_asked_count_nowhere() -> None:
    batch = random_batch(50, 3, 5)
    batch.is_scored_BT[:, :2] = False
    logits = normal(stream_key(0, "l"), (50, 3, 5))
    scores = score([logits], batch)
    only_last = Batch(batch.tokens_BL, batch.answers_BT[:, 2:], batch.is_scored_BT[:, 2:])
    expected = score([logits[:, 2:]], only_last).summary()
    assert scores.summary() == pytest.approx(expected)
    assert scores.per_context_length()["accuracy"][:2].isnan().all()


def test_a_confidently_wrong_prediction_has_a_finite_loss() -> None:
    batch = random_batch(1, 1, 5)
    logits = torch.zeros(1, 1, 5)
    logits[0, 0, batch.answers_BT.item()] = -5000.0  # type: ignore[index]
    assert score([logits], batch).summary()["nll"] == pytest.approx(5000.0 + math.log(4))
