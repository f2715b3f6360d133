"""Looks add up to states, events and a table; what was saved goes on as if nothing had happened."""

import json
from dataclasses import replace
from math import isnan, nan
from typing import Any

import pytest
import torch

from epigrok.errors import UserError
from epigrok.monitor import SEEN, StateRule, Tolerance, ToleranceRatio
from epigrok.monitor.fit import SignsOfFit
from epigrok.monitor.history import History
from epigrok.monitor.measuring import Mean, SetMeasure

RULE = StateRule()
FITTED = SignsOfFit(train_accuracy=1.0)
NOTHING = {"train_accuracy": None, "train_loss": None}


def measured(ratio: float) -> dict[str, SetMeasure]:
    """A look at which the watched set has this ratio."""

    def one(tau: float) -> SetMeasure:
        return SetMeasure(
            num_rows=256,
            tolerance=Tolerance(value=tau, row_variance=1e-4, draw_effects_S=torch.zeros(8)),
            chance=0.1,
            calibrated_epistemic=Mean(0.2, 0.01),
            entropy=Mean(0.3, 0.01),
            confidence=Mean(0.99, 0.01),
            answers=(0, 1, 2, 3) * 64,
        )

    return {SEEN: one(0.5), "held out": one(0.5 * ratio)}


def followed(ratios: list[float], history: History | None = None, first: int = 0) -> History:
    history = history or History(("held out",), RULE)
    for place, ratio in enumerate(ratios):
        history.add(100 * (first + place), measured(ratio), FITTED)
    return history


GROKKING = [0.1, 0.1, 0.1, 0.9, 0.9, 0.9, 0.05, 0.05, 0.05]


def test_a_set_that_is_memorised_then_grokked_then_lost_has_these_events() -> None:
    events = followed(GROKKING).events
    assert [(name, state) for name, state, _ in events] == [
        ("held out", "memorising"),
        ("held out", "generalised"),
        ("held out", "lost"),
    ]
    assert 300 <= events[1].step <= 500


def test_the_whole_network_is_asked_only_where_an_announcement_depends_on_it() -> None:
    asked = []

    def network_ratio(name: str) -> ToleranceRatio:
        asked.append(name)
        return ToleranceRatio(value=0.1, log_standard_error=0.05)

    history = History(("held out",), RULE)
    for step, ratio in enumerate(GROKKING):
        history.add(step, measured(ratio), FITTED, network_ratio)
    assert history.standings["held out"].state == "memorising"
    assert asked == 3 * ["held out"]
    ratios = [look["held out"].network_ratio for look in history.readings]
    assert [not isnan(ratio) for ratio in ratios] == [ratio == 0.9 for ratio in GROKKING]


def by_heart(ratio: float) -> dict[str, SetMeasure]:
    """Watched answers follow from seen ones, which do not follow from each other."""
    found = measured(ratio)
    watched = replace(
        found["held out"], predictability=Mean(0.7, 0.05), seen_predictability=Mean(0.0, 0.05)
    )
    return {**found, "held out": watched}


def test_a_set_learnt_by_heart_is_not_announced_also_after_a_replay() -> None:
    history = followed([0.1, 0.1])
    for step in (300, 400, 500):
        history.add(step, by_heart(0.9), FITTED)
    assert history.standings["held out"].state == "generalising"
    assert history.readings[-1]["held out"].predictability == 0.7
    again = History(("held out",), RULE)
    again.replay(history.readings)
    assert again.standings == history.standings
    restored = History(("held out",), RULE)
    restored.restore(json.loads(json.dumps(history.to_json())))
    assert restored.readings[-1]["held out"].predictability_se == 0.05


def test_steps_must_go_on() -> None:
    history = followed([0.1, 0.1])
    with pytest.raises(UserError, match="step 100 does not come after step 100"):
        history.add(100, measured(0.1), FITTED)


def test_an_exception_in_a_look_leaves_the_history_as_it_was() -> None:
    history = followed([0.1, 0.1, 0.1])
    before = history.to_json()

    def fail(name: str) -> ToleranceRatio:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        history.add(1000, measured(0.9), FITTED, fail)
    assert history.to_json() == before


def test_the_table_has_a_row_for_each_look_and_set_and_columns_of_one_length() -> None:
    table = followed(GROKKING).table()
    assert {len(column) for column in table.values()} == {18}
    assert table["set"][:2] == [SEEN, "held out"]
    assert table["tolerance_ratio"][1] == pytest.approx(0.1)
    assert table["state"][0] is None
    assert table["tolerance"][:2] == pytest.approx([0.5, 0.05])


@pytest.mark.parametrize("stop", range(1, len(GROKKING)))
def test_going_on_from_a_saved_history_is_the_same_as_never_stopping(stop: int) -> None:
    first = followed(GROKKING[:stop])
    resumed = History(("held out",), RULE)
    resumed.restore(json.loads(json.dumps(first.to_json(), allow_nan=False)))
    followed(GROKKING[stop:], resumed, first=stop)
    assert resumed.to_json() == followed(GROKKING).to_json()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"format": 99}, "another version"),
        ({"watched": ["other"]}, r"watched \['other'\], this one watches \['held out'\]"),
    ],
)
def test_what_is_not_its_own_is_refused(changed: dict[str, Any], sentence: str) -> None:
    saved = followed([0.1]).to_json()
    with pytest.raises(UserError, match=sentence):
        History(("held out",), RULE).require_saved(saved | changed, {})


@pytest.mark.parametrize("changed", [{"table": {}, "events": [[1]]}, {"table": {"step": []}}])
def test_what_is_damaged_is_refused(changed: dict[str, Any]) -> None:
    saved = followed([0.1]).to_json()
    with pytest.raises(UserError, match="damaged"):
        History(("held out",), RULE).restore(saved | changed)


@pytest.mark.parametrize("signs", [{"train_accuracy": nan}, {"train_loss": nan}])
def test_a_sign_of_fit_that_is_no_number_says_that_nothing_is_fitted(
    signs: dict[str, float],
) -> None:
    history = History(("held out",), RULE)
    history.add(100, measured(0.9), SignsOfFit.given(**{**NOTHING, **signs}))
    assert history.standings["held out"].state == "fitting"
    assert (
        history.readings[0]["held out"].unreadable
        == "the sign of fit that was passed is not a number"
    )


def test_time_is_added_to_the_last_look() -> None:
    history = followed([0.1])
    assert history.record_seconds(0.25).seconds == 0.25
    assert history.readings[-1].seconds == 0.25


def test_what_is_not_known_stays_unknown_through_a_file() -> None:
    history = followed([nan])
    again = History(("held out",), RULE)
    again.restore(json.loads(json.dumps(history.to_json(), allow_nan=False)))
    assert isnan(again.readings[0]["held out"].tolerance_ratio)


def test_answers_are_compared_with_those_of_a_tenth_of_the_steps_before() -> None:
    """However close looks are; then answers of a few looks are kept, not of all."""
    history = History(("held out",), RULE)
    answers = {step: tuple((0, 1) * 128) if step < 1050 else (0,) * 128 + (1,) * 128
               for step in range(1000, 1300, 5)}  # fmt: skip
    steadiness = {}
    for step, found in answers.items():
        look = {name: replace(part, answers=found) for name, part in measured(0.9).items()}
        steadiness[step] = history.add(step, look, FITTED)["held out"].steadiness
    assert all(isnan(steadiness[step]) for step in range(1000, 1100, 5))
    assert steadiness[1100] == pytest.approx(0.0)
    assert steadiness[1295] == pytest.approx(1.0)
    assert len(history.answers.of_steps) < 10


def test_answers_are_compared_with_the_first_sure_look_however_long_ago_it_was() -> None:
    history = followed([0.1, 0.1, 0.9, 0.9])
    assert history.standings["held out"].sure_step == 200
    other = measured(0.45)  # above the threshold, and not surely
    for step in range(400, 3000, 20):
        found = history.add(step, other, FITTED)["held out"]
        assert found.kept == pytest.approx(1.0)
    changed = {name: replace(part, answers=(1, 1, 3, 3) * 64) for name, part in other.items()}
    again = History(("held out",), RULE)
    again.restore(json.loads(json.dumps(history.to_json())))
    for one in (history, again):
        found = one.add(3000, changed, FITTED)["held out"]
        assert found.kept == pytest.approx((0.5 - 0.25) / (1.0 - 0.25))
        assert found.state == "lost"
        assert one.readings[-1]["held out"].kept == found.kept


def test_a_set_that_is_lost_slowly_is_lost_although_every_look_is_sure() -> None:
    """A few rows change at each look, and all others stay as they were at the look before."""
    history = followed([0.1, 0.1, 0.9])
    look, states, rows = measured(0.9), [], [0, 1, 2, 3] * 64
    for place in range(16):
        rows[16 * place : 16 * place + 16] = [1, 2, 3, 0] * 4
        drifted = {name: replace(part, answers=tuple(rows)) for name, part in look.items()}
        found = history.add(300 + 50 * place, drifted, FITTED)["held out"]
        states.append(found.state)
        assert found.steadiness > RULE.steady_from
    assert states[:4] == ["generalised"] * 4
    assert states[-1] == "lost"


def test_without_a_metric_the_seen_answers_must_have_stopped_changing() -> None:
    history, nothing = History(("held out",), RULE), SignsOfFit()
    look = measured(0.1)
    other = {**look, SEEN: replace(look[SEEN], answers=(1, 0, 2, 3) * 64)}
    states = [
        history.add(step, now, nothing)["held out"].state
        for step, now in [(100, other), (200, look), (300, look)]
    ]
    assert states == ["fitting", "fitting", "memorising"]
    assert [look[SEEN].steadiness for look in history.readings[1:]] == pytest.approx([1 / 3, 1.0])
    replayed = History(("held out",), RULE)
    replayed.replay(history.readings)
    assert replayed.events == history.events


def test_a_sign_of_fit_that_is_no_number_stays_so_through_a_file() -> None:
    history = History(("held out",), RULE)
    history.add(100, measured(0.9), SignsOfFit.given(nan, None))
    other = History(("held out",), RULE)
    other.restore(json.loads(json.dumps(history.to_json(), allow_nan=False)))
    (look,) = other.readings
    assert look.train_accuracy is not None
    assert isnan(look.train_accuracy)
    assert look.train_loss is None
