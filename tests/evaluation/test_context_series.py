"""Context length and noise: known relations between what different contexts allow."""

import math
from dataclasses import replace
from functools import cache

import pytest
import torch
from small_tasks import family_of, one_parameter_run, two_parameter_run

from epigrok.config import RunConfig, preset
from epigrok.config.splits import ID_VAL
from epigrok.evaluation import ContextRow, evaluation_sets, score_posterior, series_rows
from epigrok.evaluation.context_series import NOISE_LEVELS
from epigrok.evaluation.schema import METRIC_NAMES, SERIES_TABLES, TABLES
from epigrok.model import build_model
from epigrok.posteriors import Point, WeightNoise

POSTERIORS = ("point", "weight-noise:0.3", "oracle-memorising", "oracle-generalising")
RUNS = {
    "one parameter": one_parameter_run(),
    "two parameters": two_parameter_run(),
    "one parameter mod 31": one_parameter_run(task=preset("icl-tiny").task),
}


def config_of(name: str, **evaluation: object) -> RunConfig:
    settings = {"num_sequences": 60, "num_sampled_sequences": 60, **evaluation}
    return replace(RUNS[name], evaluation=replace(RUNS[name].evaluation, **settings))  # type: ignore[arg-type]


@cache
def rows_of(name: str, series: str, **evaluation: object) -> list[ContextRow]:
    config = config_of(name, **evaluation)
    model = build_model(config)
    posteriors = [Point.of(model), WeightNoise.relative(model, 0.3)]
    return list(series_rows(series, config, model, family_of(config), posteriors, 3))  # type: ignore[arg-type]


def pick(rows: list[ContextRow], **wanted: object) -> list[ContextRow]:
    return [r for r in rows if all(getattr(r, name) == value for name, value in wanted.items())]


@pytest.mark.parametrize("name", ["one parameter", "two parameters"])
def test_every_split_has_every_context_length_once(name: str) -> None:
    rows, task = rows_of(name, "context-length"), RUNS[name].task
    lengths = range(1, task.num_examples + 1)
    found = [(r.split, r.posterior, r.context_length) for r in rows]
    assert sorted(found) == sorted(
        (split.name, posterior, length)
        for split in task.splits
        for posterior in POSTERIORS
        for length in lengths
    )
    assert {(r.posterior, r.num_samples) for r in rows} == {
        (posterior, 3 if posterior == "weight-noise:0.3" else 1) for posterior in POSTERIORS
    }
    assert {r.context_noise for r in rows} == {0.0}


@pytest.mark.parametrize("series", SERIES_TABLES)
def test_rows_have_the_columns_of_their_table(series: str) -> None:
    columns = {column.name for column in TABLES[SERIES_TABLES[series]].columns}
    for row in rows_of("two parameters", series):
        assert set(METRIC_NAMES) - {"relative_position"} <= set(row.metrics) <= columns


def test_sampled_posteriors_may_take_fewer_sequences() -> None:
    rows = rows_of("one parameter", "context-length", num_sampled_sequences=12)
    taken = {r.posterior: r.num_sequences for r in pick(rows, split="id_train")}
    assert taken == dict.fromkeys(POSTERIORS, 60) | {"weight-noise:0.3": 12}


def test_lengths_from_one_pass_equal_truncated_prompts() -> None:
    rows, config = rows_of("two parameters", "context-length"), config_of("two parameters")
    model = build_model(config)
    batch = evaluation_sets(config, family_of(config))["ood_val"].batch
    for length in range(1, 6):
        with torch.no_grad():
            logits = model(batch.tokens_BL[:, : 3 * length])[:, -1]
        answers = batch.answers_BT[:, length - 1]
        nll = torch.nn.functional.cross_entropy(logits.double(), answers).item()
        accuracy = (logits.argmax(-1) == answers).double().mean().item()
        (row,) = pick(rows, split="ood_val", posterior="point", context_length=length)
        assert row.metrics["accuracy"] == pytest.approx(accuracy)
        assert row.metrics["nll"] == pytest.approx(nll, rel=1e-5)


def test_lengths_asked_one_by_one_equal_truncated_prompts() -> None:
    """Held-out cells are only asked last, so each length has sequences of its own."""
    rows, config = rows_of("one parameter", "context-length"), config_of("one parameter")
    model, family = build_model(config), family_of(config)
    for length in range(1, 5):
        batch = family.evaluation_batch(ID_VAL, 60, length)
        with torch.no_grad():
            logits = model(batch.tokens_BL)[:, -1].double()
        nll = torch.nn.functional.cross_entropy(logits, batch.answers_BT[:, -1]).item()
        (row,) = pick(rows, split="id_val", posterior="point", context_length=length)
        assert row.metrics["nll"] == pytest.approx(nll, rel=1e-5)


def test_more_context_never_hurts_the_ideal_generaliser() -> None:
    rows = rows_of("two parameters", "context-length")
    for split in ("id_val", "ood_val"):
        curve = pick(rows, split=split, posterior="oracle-generalising")
        losses = [row.metrics["nll"] for row in curve]
        assert losses[0] > 1.5
        assert losses[-1] < 0.5
        assert all(later < earlier + 0.1 for earlier, later in zip(losses, losses[1:]))


def test_noise_levels_are_complete_and_clean_means_clean() -> None:
    rows, config = rows_of("two parameters", "context-noise"), config_of("two parameters")
    for split in config.task.splits:
        for posterior in POSTERIORS:
            found = pick(rows, split=split.name, posterior=posterior)
            assert tuple(r.context_noise for r in found) == NOISE_LEVELS
    assert {r.context_length for r in rows} == {5}
    model = build_model(config)
    sets = evaluation_sets(config, family_of(config))
    clean = score_posterior(model, Point.of(model), sets, 1)
    for split, scores in clean.items():
        (row,) = pick(rows, split=split, posterior="point", context_noise=0.0)
        assert row.metrics["nll"] == pytest.approx(scores.summary()["nll_final"])


def test_knowing_the_noise_beats_believing_in_a_clean_context() -> None:
    rows = pick(rows_of("two parameters", "context-noise"), split="ood_val")
    believers = pick(rows, posterior="oracle-generalising:believes-clean")
    assert tuple(row.context_noise for row in believers) == NOISE_LEVELS[1:]
    for believer in believers[2:8]:
        (informed,) = pick(
            rows, posterior="oracle-generalising", context_noise=believer.context_noise
        )
        assert informed.metrics["nll"] < believer.metrics["nll"]


def test_a_context_of_noise_leaves_the_exact_predictor_its_prior() -> None:
    rows, config = rows_of("two parameters", "context-noise"), config_of("two parameters")
    (useless,) = pick(rows, split="id_val", posterior="oracle-generalising", context_noise=1.0)
    batch = family_of(config).evaluation_batch(ID_VAL, 60, 5)
    x, y = batch.tokens_BL[:, -3], batch.tokens_BL[:, -2]
    floor = config.evaluation.oracle_noise / 7
    entropies = []
    for query in zip(x.tolist(), y.tolist(), strict=True):
        # All 49 tasks alike: uniform over answers, unless both inputs are zero.
        spread = 1 / 7 if any(query) else 0.0
        likeliest = 1.0 if not any(query) else 1 / 7
        probs = [(1 - 7 * floor) * p + floor for p in [likeliest, *[spread] * 6]]
        entropies.append(-sum(p * math.log(p) for p in probs))
    assert useless.metrics["total"] == pytest.approx(sum(entropies) / len(entropies))


def test_the_answer_that_is_asked_is_known_to_be_clean() -> None:
    rows = pick(rows_of("one parameter mod 31", "context-noise"), split="ood_val")
    (exact,) = pick(rows, posterior="oracle-generalising", context_noise=0.1)
    (clean,) = pick(rows, posterior="oracle-generalising", context_noise=0.0)
    # Five examples, one in ten corrupted, leave a single multiplier nearly always.
    assert exact.metrics["total"] < clean.metrics["total"] + 0.2


def test_an_oracle_that_allows_for_no_noise_is_left_out_at_every_level() -> None:
    rows = rows_of("one parameter", "context-noise", oracle_noise=0.0)
    assert {row.posterior for row in rows} == {"point", "weight-noise:0.3"}
    assert not any("kl_memorising" in row.metrics for row in rows)
