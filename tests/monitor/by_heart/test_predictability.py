"""Predictions of answers from answers: closed forms against refits, and what they tell apart."""

import json
from dataclasses import replace
from math import hypot, inf, isnan, nan

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from benchmarks.detection.coin_flips import RECIPES, inputs, network
from epigrok.errors import UserError
from epigrok.monitor import SEEN, GrokMonitor, MonitorSettings, StateRule, Tolerance
from epigrok.monitor.by_heart.predictability import (
    Predictability,
    _Predictor,
    _predictors,
    _with_clearest,
)
from epigrok.monitor.measuring import Mean, SetMeasure
from epigrok.monitor.sets.set_rows import SetRows
from epigrok.monitor.sets.taking import taken
from epigrok.random_streams import integers, normal, stream_key

SHARE = StateRule().by_heart_share
UNREAD = SetMeasure(
    num_rows=0,
    tolerance=Tolerance(value=nan, reason="not measured"),
    chance=0.0,
    calibrated_epistemic=Mean(),
    entropy=Mean(),
    confidence=Mean(),
)


def rows_of(inputs: object, name: str = SEEN, at_most: int = 1024) -> SetRows:
    """As after a pass of a model that answers each input once."""
    found = SetRows(taken(inputs, name, at_most), "all", at_most)
    found._chosen = [torch.arange(size) for size in found._inputs.sizes]
    found._shapes = [(size, 3) for size in found._inputs.sizes]
    return found


def kappas(
    seen_x: object, watched_x: object, seen_y: Tensor, watched_y: Tensor
) -> dict[str, float]:
    rows = {SEEN: rows_of(seen_x), "held out": rows_of(watched_x, "held out")}
    answers = {SEEN: seen_y, "held out": watched_y}
    measured = {n: replace(UNREAD, answers=tuple(y.tolist())) for n, y in answers.items()}
    found = Predictability(rows, {}, SHARE).added_to(measured)
    return {name: measure.predictability.value for name, measure in found.items()}


def drawn(name: str, *shape: int) -> Tensor:
    return normal(stream_key(0, name), shape)


def predictor_of(seen_x: Tensor, own_x: Tensor) -> _Predictor:
    sets = {SEEN: seen_x, "held out": own_x}
    columns = {name: rows_of(x).columns(1024, 4096) for name, x in sets.items()}
    return _predictors(columns, {})[0]


def kernel(of: Tensor, seen: Tensor, width_of: Tensor) -> Tensor:
    """The kernel by its definition, one pair at a time."""
    spread = width_of.std(dim=0, correction=0)
    scaled, others, own = ((x - width_of.mean(dim=0)) / spread for x in (of, seen, width_of))
    pairs = [float((a - b).square().sum()) for i, a in enumerate(own) for b in own[:i]]
    width = sorted(2 * pairs)[len(pairs) - 1]
    return torch.stack(
        [torch.stack([(-(a - b).square().sum() / width).exp() for b in others]) for a in scaled]
    )


def test_a_left_out_row_is_predicted_as_a_refit_without_it_does() -> None:
    x, y = drawn("x", 14, 3).double(), integers(stream_key(0, "y"), 3, (14,))
    found = predictor_of(x, x)
    targets = one_hot(y).double()
    targets -= targets.mean(dim=0)
    kernel_NN = kernel(x, x, x)
    predicted = []
    for row in range(14):
        others = [n for n in range(14) if n != row]
        ridge = kernel_NN[others][:, others] + 0.1 * torch.eye(13)
        predicted.append(kernel_NN[row, others] @ torch.linalg.solve(ridge, targets[others]))
    refit = torch.stack(predicted)
    inverse_NN = found._inverse_NN.double()
    closed = targets - inverse_NN @ targets / inverse_NN.diagonal()[:, None]
    torch.testing.assert_close(closed, refit, atol=1e-5, rtol=1e-4)


def test_a_watched_row_is_predicted_as_refits_without_one_row_of_its_answer_do() -> None:
    x, y = drawn("x", 14, 3).double(), torch.arange(14) % 2
    watched, own = drawn("watched", 40, 3).double(), torch.arange(40) % 2
    targets = one_hot(y).double()
    targets -= targets.mean(dim=0)
    kernel_NN, cross = kernel(x, x, x), kernel(watched, x, x)
    hits = []
    for row in range(40):
        refits = []
        for left_out in (n for n in range(14) if y[n] == own[row]):
            others = [n for n in range(14) if n != left_out]
            ridge = kernel_NN[others][:, others] + 0.1 * torch.eye(13)
            refits.append(cross[row, others] @ torch.linalg.solve(ridge, targets[others]))
        hits.append(int(torch.stack(refits).mean(dim=0).argmax()))
    observed = sum(hit == int(a) for hit, a in zip(hits, own)) / 40
    shares = [hits.count(c) / 40 for c in (0, 1)]
    chance = 0.5 * sum(shares)
    found, _ = predictor_of(x, watched).agreement({SEEN: y, "held out": own})["held out"]
    assert found.value == pytest.approx((observed - chance) / (1.0 - chance))


@pytest.mark.parametrize("num_classes", [2, 10])
def test_answers_that_follow_from_nothing_are_predicted_equally_badly(num_classes: int) -> None:
    """Also where classes are balanced, so that a row that is left out makes its own class rarer."""
    gaps = []
    for repeat in range(40):
        x, watched = drawn(f"x{repeat}", 80, 6), drawn(f"watched{repeat}", 200, 6)
        y, own = (torch.arange(n) % num_classes for n in (80, 200))
        found = kappas(x, watched, y, own)
        gaps.append(found["held out"] - found[SEEN])
    gap = torch.tensor(gaps)
    assert abs(float(gap.mean())) < 3.0 * float(gap.std()) / 40**0.5
    assert float(gap.std()) < 0.25


def test_units_and_the_names_of_answers_do_not_matter() -> None:
    x, watched = drawn("x", 100, 4), drawn("watched", 100, 4)
    y, own = (x[:, 0] > 0).long(), (watched[:, 0] > 0).long()
    plain = kappas(x, watched, y, own)
    units = torch.tensor([1e6, 1.0, 1e-6, 30.0])
    found = kappas(x * units, watched * units, 5 - 3 * y, 5 - 3 * own)
    assert found == pytest.approx(plain)
    assert plain[SEEN] > 0.5
    constant = torch.cat([x, torch.full((100, 1), 0.1)], dim=1)
    varied = torch.cat([watched, torch.full((100, 1), 0.1)], dim=1)
    assert kappas(constant, varied, y, own) == pytest.approx(plain)


def test_tokens_are_names_and_pictures_in_bytes_are_numbers() -> None:
    tokens, other = (integers(stream_key(0, n), 7, (200, 3)) for n in ("tokens", "others"))
    renamed = torch.tensor([3, 6, 0, 1, 5, 2, 4])
    plain = kappas(tokens, other, tokens[:, 1] % 2, other[:, 1] % 2)
    assert kappas(renamed[tokens], renamed[other], tokens[:, 1] % 2, other[:, 1] % 2) == plain
    assert plain[SEEN] > 0.5
    pictures = (torch.arange(256) % 256).to(torch.uint8)[:, None]
    bright = (pictures[:, 0] > 127).long()
    assert kappas(pictures, pictures, bright, bright)[SEEN] > 0.9
    assert kappas(pictures.long(), pictures.long(), bright, bright)[SEEN] < 0.1


def test_an_answer_that_no_seen_row_gives_is_never_predicted() -> None:
    x, watched = drawn("x", 64, 2), drawn("watched", 64, 2)
    found = kappas(x, watched, torch.arange(64) % 2, torch.full((64,), 7))
    assert found["held out"] == 0.0


@pytest.mark.parametrize(
    "watched",
    [
        drawn("watched", 64, 5),
        [drawn("first", 32, 4), drawn("second", 32, 3)],
    ],
    ids=["other columns", "ragged"],
)
def test_inputs_that_cannot_be_compared_say_nothing(watched: object) -> None:
    y = torch.arange(64) % 2
    found = kappas(drawn("x", 64, 4), watched, y, y)
    assert isnan(found["held out"])
    assert not isnan(found[SEEN])


def test_outputs_that_are_not_finite_say_nothing() -> None:
    y = torch.arange(64) % 2
    assert isnan(kappas(drawn("x", 64, 4), drawn("watched", 64, 4), y, -y)["held out"])


def test_numbers_that_are_missing_are_taken_for_the_mean() -> None:
    x, watched = drawn("x", 100, 4), drawn("watched", 100, 4)
    y, own = (x[:, 0] > 0).long(), (watched[:, 0] > 0).long()
    plain = kappas(x, watched, y, own)
    for value in (nan, inf, -inf):
        x[3, 2], watched[5, 1], watched[7, 3] = value, value, value
        found = kappas(x, watched, y, own)
        assert found == pytest.approx(plain, abs=0.1)


def test_copies_of_a_row_do_not_predict_it() -> None:
    x, watched = drawn("x", 60, 8), drawn("watched", 100, 8)
    y, own = (integers(stream_key(0, n), 2, (len(of),)) for n, of in (("y", x), ("own", watched)))
    once = kappas(x, watched, y, own)
    assert kappas(x.repeat(3, 1), watched, y.repeat(3), own) == pytest.approx(once)
    assert once[SEEN] < 0.5


def test_watched_copies_of_seen_rows_do_not_count() -> None:
    """They would be predicted by themselves, and a rule be taken for rows learnt by heart."""
    x, watched = drawn("x", 60, 8), drawn("watched", 100, 8)
    y, own = (integers(stream_key(0, n), 2, (len(of),)) for n, of in (("y", x), ("own", watched)))
    apart = kappas(x, watched, y, own)
    both, of_both = torch.cat([x[:40], watched, watched]), torch.cat([y[:40], own, own])
    assert kappas(x, both, y, of_both) == pytest.approx(apart)
    assert isnan(kappas(x, x, y, y)["held out"])


def test_entries_of_a_mapping_are_compared_by_name() -> None:
    x, watched = drawn("x", 100, 3), drawn("watched", 100, 3)
    y, own = (x[:, 0] > 0).long(), (watched[:, 0] > 0).long()
    noise, other = drawn("noise", 100, 3), drawn("other", 100, 3)
    one = kappas({"a": x, "b": noise}, {"a": watched, "b": other}, y, own)
    assert kappas({"a": x, "b": noise}, {"b": other, "a": watched}, y, own) == one
    assert one["held out"] > 0.5


def test_seen_answers_count_as_often_as_watched_ones_have_them() -> None:
    """One rule, with one answer rare among the seen and not among the watched."""
    x, watched = drawn("many", 3000, 4), drawn("watched", 400, 4)
    is_kept = (x[:, 0] < 0) | (torch.arange(3000) % 12 == 0)
    x = x[is_kept][:800]
    y, own = (x[:, 0] > 0).long(), (watched[:, 0] > 0).long()
    assert y.double().mean() < 0.12
    rows = {SEEN: rows_of(x), "held out": rows_of(watched, "held out")}
    answers = {SEEN: y, "held out": own}
    measured = {n: replace(UNREAD, answers=tuple(a.tolist())) for n, a in answers.items()}
    found = Predictability(rows, {}, SHARE).added_to(measured)
    own_kappa, seen_kappa = found["held out"].predictability, found["held out"].seen_predictability
    assert own_kappa.value - found[SEEN].predictability.value > 0.1
    error = hypot(own_kappa.standard_error, seen_kappa.standard_error)
    assert abs(own_kappa.value - seen_kappa.value) < 2.0 * error


def test_of_many_rows_and_columns_some_are_taken() -> None:
    x = drawn("x", 3000, 5)
    assert rows_of(x, at_most=3000).columns(1024, 2).numbers.shape == (1024, 2)  # type: ignore[union-attr]
    y = (x[:, 0] > 0).long()
    rows = {SEEN: rows_of(x, at_most=3000)}
    found = Predictability(rows, {}, SHARE).added_to(
        {SEEN: replace(UNREAD, answers=tuple(y.tolist()))}
    )
    assert found[SEEN].predictability.value > 0.8


def test_a_model_that_answers_at_several_positions_is_not_predicted() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(5, 16), nn.Linear(16, 5))
    tokens, others = (integers(stream_key(0, n), 5, (128, 9)) for n in ("tokens", "others"))
    reading = GrokMonitor(model, tokens, {"held out": others}).update(0)
    assert isnan(reading["held out"].predictability)
    settings = MonitorSettings(answered="last")
    reading = GrokMonitor(model, tokens, {"held out": others}, settings=settings).update(0)
    assert not isnan(reading["held out"].predictability)
    # As many rows are read as there are inputs, but they are of some inputs only.
    many, more = (integers(stream_key(0, n), 5, (300, 9)) for n in ("many", "more"))
    reading = GrokMonitor(model, many, {"held out": more}).update(0)
    assert isnan(reading["held out"].predictability)


NUM_FEATURES = 100


def monitored(x: Tensor, y: Tensor, watched: Tensor, rule: StateRule) -> GrokMonitor:
    """A logistic regression, looked at as it is trained."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(NUM_FEATURES, 2))
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.03)
    settings = MonitorSettings(rule=rule, num_rows=1024)
    monitor = GrokMonitor(model, x, {"held out": watched}, settings=settings)
    for step in range(1, 401):
        optimiser.zero_grad()
        logits = model(x)
        cross_entropy(logits, y).backward()
        optimiser.step()
        if step % 25 == 0:
            accuracy = (logits.argmax(dim=1) == y).double().mean()
            monitor.update(step, train_accuracy=accuracy)
    return monitor


def test_coin_flips_learnt_by_heart_between_smooth_rows_are_not_announced() -> None:
    """Few rows fit any labels, and fresh ones are as firm: the ratio alone is fooled."""
    x, watched = drawn("flips:x", 170, NUM_FEATURES), drawn("flips:watched", 256, NUM_FEATURES)
    flips = integers(stream_key(0, "flips"), 2, (170,))
    told = monitored(x, flips, watched, StateRule())
    assert told.states == {"held out": "generalising"}
    last = told.readings[-1]
    assert last["held out"].tolerance_ratio > 1.0
    assert "learnt by heart" in (last["held out"].unreadable or "")
    found = last["held out"]
    error = hypot(found.predictability_se, found.seen_predictability_se)
    assert found.predictability - found.seen_predictability > 3.0 * error
    fooled = monitored(x, flips, watched, StateRule(by_heart_deviations=inf))
    assert fooled.states == {"held out": "generalised"}


def test_a_rule_that_the_same_network_learns_is_announced() -> None:
    x, watched = drawn("rule:x", 3000, NUM_FEATURES), drawn("rule:watched", 1024, NUM_FEATURES)
    told = monitored(x, (x[:, :5].sum(dim=1) > 0).long(), watched, StateRule())
    assert told.states == {"held out": "generalised"}


def test_features_tell_what_raw_inputs_do_not() -> None:
    """Answers that follow from sums of columns whose single numbers say little of them."""
    x, watched = drawn("x", 250, 200), drawn("watched", 250, 200)
    weight = drawn("weight", 200, 2)
    features = {SEEN: (x @ weight).double(), "held out": (watched @ weight).double()}
    y, own = ((of[:, 0] > 0).long() for of in features.values())
    rows = {SEEN: rows_of(x), "held out": rows_of(watched, "held out")}
    answers = {SEEN: y, "held out": own}
    measured = {n: replace(UNREAD, answers=tuple(a.tolist())) for n, a in answers.items()}
    raw = Predictability(rows, {}, SHARE).added_to(measured)["held out"].predictability
    both = _predictors({n: r.columns(1024, 4096) for n, r in rows.items()}, features)
    of_inputs, of_features = (p.agreement(answers)["held out"][0] for p in both)
    assert of_inputs == raw
    assert of_features.value > of_inputs.value + 0.3


def test_the_kernel_that_tells_sets_apart_more_surely_counts() -> None:
    vague, sure = (Mean(0.9, 0.2), Mean(0.5, 0.2)), (Mean(0.4, 0.02), Mean(0.2, 0.02))
    unknown = (Mean(), Mean())
    for found in ([vague, sure], [sure, vague], [unknown, sure], [sure, unknown]):
        measured = _with_clearest(UNREAD, found, SHARE)
        assert (measured.predictability, measured.seen_predictability) == sure
    assert isnan(_with_clearest(UNREAD, [], SHARE).predictability.value)
    # What tells more surely must not hide what says "by heart".
    by_heart, surer = (Mean(0.4, 0.07), Mean(0.1, 0.07)), (Mean(0.95, 0.02), Mean(0.6, 0.02))
    for found in ([by_heart, surer], [surer, by_heart]):
        measured = _with_clearest(UNREAD, found, SHARE)
        assert (measured.predictability, measured.seen_predictability) == by_heart


def test_a_monitor_that_goes_on_knows_the_features_of_the_beginning() -> None:
    x, watched = drawn("x", 120, 6), drawn("watched", 120, 6)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 40), nn.ReLU(), nn.Linear(40, 3))
    monitor = GrokMonitor(model, x, {"held out": watched})
    saved = json.loads(json.dumps(monitor.state_dict()))
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    afresh, resumed = (GrokMonitor(model, x, {"held out": watched}) for _ in range(2))
    resumed.load_state_dict(saved)
    readings = [one.update(1)["held out"] for one in (monitor, resumed, afresh)]
    assert readings[0].predictability == readings[1].predictability
    assert readings[0].predictability != readings[2].predictability
    saved["first features"]["held out"][2] = "not base64"
    with pytest.raises(UserError, match="damaged"):
        GrokMonitor(model, x, {"held out": watched}).load_state_dict(saved)


def test_a_transformer_that_learnt_coin_flips_is_told_by_its_first_features() -> None:
    """Raw tokens say nothing of what it works with, and its ratio is near one."""
    recipe = RECIPES["transformer, strings"]
    x, watched = inputs(recipe, 5, 250), inputs(recipe, 1005, 256)
    torch.manual_seed(5)
    labels = torch.randint(2, (250,))
    model = network(recipe)
    optimiser = torch.optim.AdamW(model.parameters(), lr=recipe.lr)
    monitor = GrokMonitor(model, x, {"held out": watched})
    for _ in range(150):
        optimiser.zero_grad()
        cross_entropy(model(x), labels).backward()
        optimiser.step()
    found = monitor.update(150)["held out"]
    late = GrokMonitor(model, x, {"held out": watched}).update(150)["held out"]
    assert found.predictability - found.seen_predictability > 0.3
    assert late.predictability - late.seen_predictability < 0.2
