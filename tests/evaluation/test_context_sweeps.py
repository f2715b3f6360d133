"""Context length and noise: known relations between what different contexts allow."""

import dataclasses
import math

import pytest
import torch

from epigrok.config import EvaluationConfig, RunConfig, TransformerConfig, TwoParameterTask, preset
from epigrok.evaluation import ContextRow, context_sweep, evaluation_sets, score_posterior
from epigrok.model import build_model
from epigrok.posteriors import Point, WeightNoise
from epigrok.tasks import build_family, sample_world


def small(name: str) -> RunConfig:
    config = dataclasses.replace(preset(name), evaluation=EvaluationConfig(num_rows=60))
    if name == "icl-tiny":
        return config
    task = TwoParameterTask(modulus=7, num_base_tasks=4, num_examples=5, train_fraction=0.6)
    model = TransformerConfig(num_layers=2, num_heads=2, width=16, feedforward_width=16)
    return dataclasses.replace(config, task=task, model=model, batch_size=16)


def rows_of(name: str, sweep: str, **evaluation: object) -> tuple[RunConfig, list[ContextRow]]:
    config = small(name)
    settings = dataclasses.replace(config.evaluation, **evaluation)  # type: ignore[arg-type]
    config = dataclasses.replace(config, evaluation=settings)
    model = build_model(config)
    family = build_family(config, sample_world(config.task, 0))
    posteriors = [Point.of(model), WeightNoise.relative(model, 0.3)]
    return config, list(context_sweep(sweep, config, model, family, posteriors, 3))  # type: ignore[arg-type]


def pick(rows: list[ContextRow], **wanted: object) -> list[ContextRow]:
    return [r for r in rows if all(getattr(r, name) == value for name, value in wanted.items())]


@pytest.mark.parametrize("name", ["icl-tiny", "icl-paper"])
def test_every_split_has_every_context_length_once(name: str) -> None:
    config, rows = rows_of(name, "context-length")
    for split in config.task.splits:
        for posterior in ("point", "weight-noise:0.3", "oracle-memorising", "oracle-generalising"):
            lengths = [r.context_length for r in pick(rows, split=split, posterior=posterior)]
            assert lengths == list(range(1, config.task.num_examples + 1))
    assert {r.num_samples for r in pick(rows, posterior="weight-noise:0.3")} == {3}


def test_lengths_from_one_pass_equal_truncated_prompts() -> None:
    config, rows = rows_of("icl-paper", "context-length")
    model = build_model(config)
    sets = evaluation_sets(config, build_family(config, sample_world(config.task, 0)))
    batch = sets["ood_val"].batch
    for length in range(1, 6):
        with torch.no_grad():
            logits = model(batch.tokens_BL[:, : 3 * length])[:, -1]
        accuracy = (logits.argmax(-1) == batch.answers_BT[:, length - 1]).double().mean().item()
        (row,) = pick(rows, split="ood_val", posterior="point", context_length=length)
        assert row.metrics["accuracy"] == pytest.approx(accuracy)


def test_more_context_never_hurts_the_ideal_generaliser() -> None:
    _, rows = rows_of("icl-paper", "context-length")
    for split in ("id_val", "ood_val"):
        curve = pick(rows, split=split, posterior="oracle-generalising")
        losses = [row.metrics["nll"] for row in curve]
        assert losses[0] > 1.5
        assert losses[-1] < 0.5
        assert all(later < earlier + 0.1 for earlier, later in zip(losses, losses[1:]))


def test_noise_levels_are_complete_and_clean_means_clean() -> None:
    config, rows = rows_of("icl-paper", "context-noise")
    levels = [round(0.1 * k, 1) for k in range(11)]
    for split in config.task.splits:
        for posterior in ("point", "weight-noise:0.3", "oracle-generalising"):
            found = [r.context_noise for r in pick(rows, split=split, posterior=posterior)]
            assert found == levels
    model = build_model(config)
    sets = evaluation_sets(config, build_family(config, sample_world(config.task, 0)))
    clean = score_posterior(model, Point.of(model), sets, 1)
    for split in config.task.splits:
        (row,) = pick(rows, split=split, posterior="point", context_noise=0.0)
        assert row.metrics["nll"] == pytest.approx(clean[split].summary()["nll_final"])


def test_knowing_the_noise_beats_believing_in_a_clean_context() -> None:
    _, rows = rows_of("icl-paper", "context-noise")
    for noise in (0.3, 0.5, 0.8):
        (informed,) = pick(
            rows, split="ood_val", posterior="oracle-generalising", context_noise=noise
        )
        (believer,) = pick(
            rows,
            split="ood_val",
            posterior="oracle-generalising:believes-clean",
            context_noise=noise,
        )
        assert informed.metrics["nll"] < believer.metrics["nll"]


def test_a_context_of_noise_leaves_the_exact_predictor_its_prior() -> None:
    config, rows = rows_of("icl-paper", "context-noise")
    (useless,) = pick(rows, split="id_val", posterior="oracle-generalising", context_noise=1.0)
    batch = build_family(config, sample_world(config.task, 0)).evaluation_batch("id_val", 60, 5)
    x, y = batch.tokens_BL[:, -3], batch.tokens_BL[:, -2]
    floor = config.evaluation.oracle_noise / 7
    entropies = []
    for query in zip(x.tolist(), y.tolist()):
        # All 49 tasks alike: uniform over answers, unless both inputs are zero.
        spread = 1 / 7 if any(query) else 0.0
        likeliest = 1.0 if not any(query) else 1 / 7
        probs = [(1 - 7 * floor) * p + floor for p in [likeliest, *[spread] * 6]]
        entropies.append(-sum(p * math.log(p) for p in probs))
    assert useless.metrics["total"] == pytest.approx(sum(entropies) / len(entropies))


def test_the_answer_that_is_asked_is_known_to_be_clean() -> None:
    _, rows = rows_of("icl-tiny", "context-noise")
    (exact,) = pick(rows, split="ood_val", posterior="oracle-generalising", context_noise=0.1)
    (clean,) = pick(rows, split="ood_val", posterior="oracle-generalising", context_noise=0.0)
    # Five examples, one in ten corrupted, leave a single multiplier nearly always.
    assert exact.metrics["total"] < clean.metrics["total"] + 0.2


def test_an_oracle_that_allows_for_no_noise_is_left_out_at_every_level() -> None:
    _, rows = rows_of("icl-tiny", "context-noise", oracle_noise=0.0)
    assert {row.posterior for row in rows} == {"point", "weight-noise:0.3"}
    assert not any("kl_memorising" in row.metrics for row in rows)
