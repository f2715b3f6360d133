"""The causal rule: what each reading may and may not change."""

from dataclasses import replace
from math import exp, nan

import pytest

from epigrok.monitor.rule import StateRule
from epigrok.monitor.standing import Reading, Standing, State
from epigrok.monitor.states import Confirm, follow
from epigrok.monitor.tolerance import ToleranceRatio

RULE = StateRule(
    threshold=0.5,
    deviations=1.0,
    steady_from=0.8,
    held_threshold=0.6,
    fresh_threshold=0.8,
    stretch=2.0,
    may_fall_to=0.75,
    fitted_accuracy=0.9,
    fitted_confidence=0.8,
    seen_steady_from=0.9,
    fit_may_fall_by=0.2,
    kept_from=0.5,
    spike_over=1.1,
    by_heart_share=0.5,
    by_heart_deviations=3.0,
    taken_back_share=0.2,
    taken_back_from=0.3,
    head_threshold=0.5,
    settled_ahead_from=0.2,
    ask_again_over=1.1,
)
SEEN_MEMORISING = Standing(has_memorised=True)
ANNOUNCED = Standing(state="generalised", has_generalised=True, sure_step=100)
ERROR = 0.2  # A ratio must pass 0.611 to be surely above 0.5.


def reading_of(ratio: float, step: int = 0, **others: float) -> Reading:
    signs = {"train_accuracy": 1.0, "steadiness": 1.0, **others}
    return Reading(step=step, ratio=ratio, chance=0.0, log_standard_error=ERROR, **signs)


def never() -> ToleranceRatio:
    raise AssertionError("asked")


def states(
    ratios: list[float],
    fits: list[float] | None = None,
    rule: StateRule = RULE,
    steps: list[int] | None = None,
    start: Standing = SEEN_MEMORISING,
) -> str:
    """One letter per reading: Fitting, Memorising, In between, Generalised, Lost."""
    letter = {"generalising": "I"}
    standing, seen = start, ""
    for place, ratio in enumerate(ratios):
        fit = 1.0 if fits is None else fits[place]
        step = place if steps is None else steps[place]
        standing = follow(standing, reading_of(ratio, step, train_accuracy=fit), rule)
        seen += letter.get(standing.state, standing.state[0].upper())
    return seen


def test_a_run_that_groks_goes_through_all_states() -> None:
    fits = [0.1, 0.5, 1.0, 1.0, 1.0, 1.0]
    assert states([1.0, 0.9, 0.1, 0.2, 0.55, 0.9], fits) == "FFMMIG"


def test_a_high_ratio_before_the_fit_says_nothing() -> None:
    assert states([1.0, 1.0, 1.0], [0.1, 0.5, 0.89]) == "FFF"


@pytest.mark.parametrize(
    ("deviations_above", "after"), [(1.01, "G"), (0.99, "I"), (0.01, "I"), (-0.01, "M")]
)
def test_a_ratio_must_clear_the_threshold_by_its_standard_error(
    deviations_above: float, after: str
) -> None:
    assert states([0.5 * exp(deviations_above * ERROR)]) == after


def test_generalised_is_kept_down_to_the_threshold_and_comes_back_when_sure() -> None:
    assert states([0.7, 0.55, 0.51, 0.49, 0.55, 0.7]) == "GGGLLG"


def test_a_set_that_never_generalised_is_not_lost() -> None:
    assert states([0.55, 0.1, 0.55, 0.2]) == "IMIM"


@pytest.mark.parametrize(
    ("steadiness", "after"), [(0.81, "generalised"), (0.79, "generalising"), (nan, "generalising")]
)
def test_answers_that_change_from_look_to_look_are_not_generalised(
    steadiness: float, after: State
) -> None:
    reading = reading_of(0.9, steadiness=steadiness)
    before = Standing(state="memorising", has_memorised=True)
    assert follow(before, reading, RULE).state == after
    kept = Standing(state="generalised", has_generalised=True)
    assert follow(kept, replace(reading, ratio=0.55), RULE).state == "generalised"


@pytest.mark.parametrize(
    ("of_seen", "of_watched", "error", "after"),
    [
        (0.0, 0.5, 0.1, "generalising"),
        (0.29, 0.6, 0.1, "generalising"),
        (0.31, 0.6, 0.01, "generalised"),  # more than half as well
        (0.0, 0.29, 0.1, "generalised"),  # not surely worse
        (0.6, 0.1, 0.01, "generalised"),
        (nan, 0.6, nan, "generalised"),
        (0.0, nan, nan, "generalised"),
    ],
)
def test_seen_answers_that_follow_less_from_each_other_are_by_heart(
    of_seen: float, of_watched: float, error: float, after: State
) -> None:
    reading = reading_of(
        0.9, seen_predictability=of_seen, predictability=of_watched, predictability_error=error
    )
    before = Standing(state="memorising", has_memorised=True)
    standing = follow(before, reading, RULE)
    assert standing.state == after
    assert (standing.unreadable is None) == (after == "generalised")
    assert standing.sure_step == (0 if after == "generalised" else None)


@pytest.mark.parametrize(("of_seen", "after"), [(0.19, "generalised"), (0.17, "lost")])
def test_an_announcement_is_taken_back_where_rows_are_surely_by_heart(
    of_seen: float, after: State
) -> None:
    by_heart = reading_of(
        0.9, seen_predictability=of_seen, predictability=0.9, predictability_error=0.1
    )
    found = follow(replace(ANNOUNCED, sure_step=0), by_heart, RULE)
    assert (found.state, found.sure_step) == (after, 0)
    assert (found.unreadable is None) == (after == "generalised")
    lost = Standing(state="lost", has_generalised=True, has_memorised=True)
    assert follow(lost, by_heart, RULE).state == "lost"


@pytest.mark.parametrize(("of_watched", "after"), [(0.29, "generalised"), (0.31, "lost")])
def test_no_announcement_is_taken_back_for_answers_that_nobody_can_predict(
    of_watched: float, after: State
) -> None:
    by_chance = reading_of(
        0.9, seen_predictability=-0.1, predictability=of_watched, predictability_error=0.01
    )
    assert follow(replace(ANNOUNCED, sure_step=0), by_chance, RULE).state == after


def kept_states(looks: list[tuple[int, float, float, float]], start: Standing = ANNOUNCED) -> str:
    """One letter per look of (step, share of answers kept, training accuracy, ratio)."""
    standing, seen = start, ""
    for step, kept, fit, ratio in looks:
        reading = replace(reading_of(ratio, step, train_accuracy=fit), kept=kept)
        standing = follow(standing, reading, RULE)
        seen += "I" if standing.state == "generalising" else standing.state[0].upper()
    return seen


@pytest.mark.parametrize(("kept", "after"), [(0.51, "G"), (0.49, "L"), (nan, "G")])
def test_a_set_is_lost_when_most_answers_have_changed_whatever_the_ratio(
    kept: float, after: str
) -> None:
    assert kept_states([(200, kept, 1.0, 1.0)]) == after


def test_without_a_fit_the_change_must_last_before_the_set_is_lost() -> None:
    looks = [(200, 0.1, 0.3, 1.0), (219, 0.1, 0.3, 1.0), (221, 0.1, 0.3, 1.0)]
    assert kept_states(looks) == "GGL"
    assert kept_states([(200, 0.1, 0.3, 1.0), (201, 0.9, 0.3, 1.0), (220, 0.1, 0.3, 1.0)]) == "GGG"


def test_a_loss_without_a_fit_is_no_unreadable_look() -> None:
    reading = replace(reading_of(1.0, 300, train_accuracy=0.3), kept=0.1)
    lost = follow(replace(ANNOUNCED, changed_since=200), reading, RULE)
    assert (lost.state, lost.since_step, lost.unreadable) == ("lost", 300, None)
    after = follow(lost, replace(reading, step=301), RULE)
    assert after.unreadable == "the training set is no longer fitted"


@pytest.mark.parametrize(("kept", "after"), [(0.81, "LG"), (0.79, "LL")])
def test_a_set_whose_answers_come_back_has_generalised_again(kept: float, after: str) -> None:
    assert kept_states([(200, 0.1, 1.0, 1.0), (300, kept, 0.3, 1.0)]) == after


def test_changed_answers_are_not_announced_because_the_ratio_is_high() -> None:
    looks = [(step, 0.1, 1.0, 1.0) for step in (200, 300, 600, 2000)]
    assert kept_states(looks) == "LLLL"


def test_changed_answers_are_announced_once_they_were_seen_memorising() -> None:
    looks = [(200, 0.1, 1.0, 1.0), (300, 0.1, 1.0, 0.2), (400, 0.1, 1.0, 0.9)]
    assert kept_states(looks) == "LLG"
    assert kept_states([*looks, (500, 1.0, 1.0, 0.9)]) == "LLGG"


def test_an_earlier_fit_says_nothing_of_what_is_memorised_after_a_change() -> None:
    after = replace(reading_of(1.0, 200), kept=0.1)
    assert not follow(replace(ANNOUNCED, has_memorised=True), after, RULE).has_memorised


def test_answers_are_compared_with_the_look_that_was_first_sure() -> None:
    sure = follow(SEEN_MEMORISING, reading_of(0.9, 100), RULE)
    assert sure.sure_step == 100
    assert follow(sure, reading_of(0.9, 200), RULE).sure_step == 100
    lost = follow(sure, reading_of(0.1, 200), RULE)
    assert lost.state == "lost"
    assert follow(lost, reading_of(0.9, 300), RULE).sure_step == 300


def test_a_look_that_is_not_sure_is_none_to_compare_with() -> None:
    for reading in (
        reading_of(0.55, 200),  # not by a standard error
        reading_of(0.9, 200, steadiness=0.5),
        reading_of(0.9, 200, train_accuracy=0.3),
    ):
        assert follow(SEEN_MEMORISING, reading, RULE).sure_step is None


def test_a_spike_of_the_training_loss_changes_no_state() -> None:
    assert states([0.9, 0.1, 0.9], [1.0, 0.3, 1.0]) == "GGG"
    standing = Standing(state="generalised", has_generalised=True)
    after = follow(standing, reading_of(0.1, train_accuracy=0.3), RULE)
    assert after.unreadable == "the training set is no longer fitted"


NEW = Standing()
STEPS = [100, 120, 150, 199, 200, 300, 400]


def test_a_ratio_that_falls_after_the_fit_is_not_announced() -> None:
    """Random labels: the margins of the training inputs are small at first."""
    falling = [0.95, 0.9, 0.8, 0.75, 0.7, 0.55, 0.3]
    assert states(falling, steps=STEPS, start=NEW) == "IIIIIIM"


def test_a_ratio_that_holds_after_the_fit_is_announced_after_the_stretch() -> None:
    holding = [0.9, 0.6, 0.65, 0.7, 0.75, 0.75, 0.75]
    assert states(holding, steps=STEPS, start=NEW) == "IIIIGGG"


@pytest.mark.parametrize("steps", [[100, 200], [100, 105, 110, 115, 199, 200], [100, 101, 350]])
def test_the_stretch_is_counted_in_steps_and_not_in_looks(steps: list[int]) -> None:
    expected = "".join("G" if step >= 200 else "I" for step in steps)
    assert states([0.75] * len(steps), steps=steps, start=NEW) == expected


def test_a_fall_and_a_look_below_the_threshold_begin_the_stretch_anew() -> None:
    steps = [100, 200, 300, 400]
    assert states([0.97, 0.72, 0.75, 0.75], steps=steps, start=NEW) == "IIIG"
    assert states([0.75, 0.75, 0.75, 0.75], steps=steps, start=NEW) == "IGGG"
    assert states([0.75, 0.49, 0.75, 0.75], steps=steps, start=NEW) == "IMII"
    assert states([0.75] * 3, [1.0, 0.3, 1.0], steps=[100, 150, 200], start=NEW) == "III"


@pytest.mark.parametrize(("deviations_above", "after"), [(1.01, "IG"), (0.99, "II")])
def test_a_ratio_that_has_held_has_a_threshold_of_its_own(
    deviations_above: float, after: str
) -> None:
    ratio = 0.6 * exp(deviations_above * ERROR)
    assert states([ratio, ratio], steps=[100, 200], start=NEW) == after


@pytest.mark.parametrize(("deviations_above", "after"), [(1.01, "G"), (0.99, "I")])
def test_a_ratio_that_is_surely_high_needs_no_history(deviations_above: float, after: str) -> None:
    assert states([0.8 * exp(deviations_above * ERROR)], steps=[100], start=NEW) == after


@pytest.mark.parametrize(("deviations_below", "after"), [(1.01, "MG"), (0.99, "MI")])
def test_a_set_seen_memorising_is_announced_without_a_stretch(
    deviations_below: float, after: str
) -> None:
    ratios = [0.5 * exp(-deviations_below * ERROR), 0.7]
    assert states(ratios, steps=[100, 110], start=NEW) == after


def test_the_whole_network_says_what_was_memorised() -> None:
    """Behind a layer norm the head alone never falls below the threshold."""
    standing = follow(Standing(), reading_of(0.9, 100), RULE, answering(0.2))
    assert (standing.state, standing.has_memorised) == ("memorising", True)


def test_an_unreadable_ratio_leaves_the_state_and_says_why() -> None:
    standing = Standing(state="memorising", since_step=3)
    reading = replace(reading_of(nan, 7), reason="too few rows")
    after = follow(standing, reading, RULE)
    assert (after.state, after.since_step, after.unreadable) == ("memorising", 3, "too few rows")


def test_the_state_depends_on_readings_so_far_only() -> None:
    ratios = [0.1, 0.5, 0.7, 0.2, 0.9, 0.35, 0.65]
    whole = states(ratios)
    assert all(states(ratios[:end]) == whole[:end] for end in range(len(ratios)))


@pytest.mark.parametrize(
    ("signs", "is_fitted"),
    [
        ({"train_accuracy": 0.96}, True),
        ({"train_accuracy": 0.94}, False),  # 0.88 above chance
        ({"train_loss": 0.1}, True),  # exp(-0.1) = 0.905, 0.81 above chance
        ({"train_loss": 0.2}, False),
        ({"seen_confidence": 0.91, "seen_steadiness": 0.91}, True),
        ({"seen_confidence": 0.91, "seen_steadiness": 0.89}, False),
        ({"seen_confidence": 0.91}, False),  # no earlier look
        ({"seen_confidence": 0.89, "seen_steadiness": 1.0}, False),
        ({"train_accuracy": 0.96, "seen_steadiness": 0.5}, True),
        ({"train_accuracy": 0.5, "train_loss": 0.0, "seen_confidence": 1.0}, False),
        ({"train_loss": 1.0, "seen_confidence": 1.0}, False),
    ],
)
def test_the_first_sign_of_fit_decides_and_is_read_above_chance(
    signs: dict[str, float], is_fitted: bool
) -> None:
    after = follow(
        Standing(), Reading(step=0, ratio=0.1, chance=0.5, steadiness=1.0, **signs), RULE
    )
    assert after.state == ("memorising" if is_fitted else "fitting")


def test_a_set_that_cannot_tell_its_fit_says_what_to_pass() -> None:
    unsure = Reading(step=0, ratio=0.1, chance=0.5, steadiness=1.0, seen_confidence=0.6)
    why = follow(Standing(), unsure, RULE).unreadable
    assert why is not None
    assert "train_accuracy" in why
    told = Reading(step=0, ratio=0.1, chance=0.5, steadiness=1.0, train_accuracy=0.6)
    assert follow(Standing(), told, RULE).unreadable is None


def test_a_reading_without_a_sign_of_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="step 3"):
        follow(Standing(), Reading(step=3, ratio=1.0, chance=0.5, steadiness=1.0), RULE)


def answering(value: float, reason: str | None = None) -> Confirm:
    return lambda: ToleranceRatio(value=value, log_standard_error=ERROR, reason=reason)


@pytest.mark.parametrize(
    ("before", "head", "network", "after"),
    [
        ("memorising", 0.9, 0.9, "generalised"),
        ("memorising", 0.62, 0.9, "generalised"),
        ("memorising", 0.6, 0.9, "generalising"),  # the head must be sure, too
        ("memorising", 0.9, 0.55, "generalising"),
        ("memorising", 0.9, 0.1, "memorising"),
        ("generalised", 0.1, 0.9, "generalised"),
        ("generalised", 0.1, 0.1, "lost"),
        ("lost", 0.9, 0.1, "lost"),
    ],
)
def test_a_change_of_sides_is_decided_by_the_whole_network(
    before: State, head: float, network: float, after: State
) -> None:
    standing = Standing(
        state=before, has_generalised=before in ("generalised", "lost"), has_memorised=True
    )
    assert follow(standing, reading_of(head), RULE, answering(network)).state == after


@pytest.mark.parametrize(
    ("before", "head"), [("memorising", 0.1), ("generalised", 0.9), ("fitting", 0.49)]
)
def test_the_whole_network_is_not_asked_where_nothing_depends_on_it(
    before: State, head: float
) -> None:
    standing = Standing(state=before, has_generalised=before == "generalised")
    follow(standing, reading_of(head), RULE, never)
    follow(Standing(), reading_of(0.9, train_accuracy=0.5), RULE, never)
    memorised = Standing(state="memorising", has_memorised=True)
    follow(memorised, reading_of(0.9, steadiness=0.5), RULE, never)
    by_heart = reading_of(0.9, seen_predictability=0.0, predictability=1, predictability_error=0.1)
    follow(memorised, by_heart, RULE, never)
    follow(Standing(), reading_of(0.79), RULE, never)  # neither held nor sure


def test_a_network_that_said_no_is_asked_again_a_tenth_of_the_steps_later() -> None:
    asked: list[int] = []
    standing = SEEN_MEMORISING

    def confirm() -> ToleranceRatio:
        asked.append(step)
        return ToleranceRatio(value=0.9 if step > 150 else 0.1, log_standard_error=ERROR)

    for step in range(100, 170, 4):
        standing = follow(standing, reading_of(0.9, step), RULE, confirm)
        assert standing.state == ("generalised" if step >= 156 else "memorising")
    assert asked == [100, 112, 124, 140, 156]


@pytest.mark.parametrize(
    ("ahead", "error", "after"),
    [
        (0.21, 0.05, "generalising"),
        (0.19, 0.05, "generalised"),
        (0.29, 0.1, "generalised"),  # not surely
        (0.31, 0.1, "generalising"),
        (-0.9, 0.01, "generalised"),
        (nan, nan, "generalised"),
    ],
)
def test_answers_that_stood_before_the_seen_ones_were_learnt_are_held_back(
    ahead: float, error: float, after: State
) -> None:
    reading = reading_of(0.9, settled_ahead=ahead, settled_ahead_error=error)
    asked: list[float] = []

    def confirm() -> ToleranceRatio:
        asked.append(ahead)
        return ToleranceRatio(value=0.9, log_standard_error=ERROR)

    standing = follow(SEEN_MEMORISING, reading, RULE, confirm)
    assert standing.state == after
    assert bool(asked) == (after == "generalised")
    assert (standing.unreadable is None) == (after == "generalised")


def test_a_second_reading_that_cannot_be_read_changes_nothing() -> None:
    before = Standing(state="memorising")
    after = follow(before, reading_of(0.9), RULE, answering(nan, "not finite"))
    assert (after.state, after.unreadable) == ("memorising", "not finite")


def test_a_network_that_always_gives_one_answer_has_fitted_nothing() -> None:
    reading = Reading(step=0, ratio=1.0, chance=1.0, steadiness=1.0, train_accuracy=1.0)
    assert follow(Standing(), reading, RULE).state == "fitting"


def test_a_rare_class_that_is_not_learnt_keeps_the_gate_shut() -> None:
    """93 % of rows have one answer, and half of the others are right: plain accuracy is 0.965."""
    chance = 0.965**2 + 0.035**2
    reading = Reading(step=0, ratio=1.0, chance=chance, steadiness=1.0, train_accuracy=0.965)
    assert follow(Standing(), reading, RULE).state == "fitting"


def test_a_fitted_set_is_judged_at_the_head_where_the_whole_network_cannot_be_read() -> None:
    after = follow(Standing(), reading_of(1.2, step=7), RULE, answering(nan, "not finite"))
    assert (after.state, after.since_step, after.unreadable) == ("generalising", 7, "not finite")


def test_while_the_network_is_not_asked_again_a_look_says_so_and_can_take_a_set_back() -> None:
    refused = replace(ANNOUNCED, refused_step=200)
    kept = follow(refused, reading_of(0.1, step=205), RULE, never)
    assert (kept.state, kept.unreadable) == (
        "generalised",
        "the whole network did not agree at step 200",
    )
    by_heart = {"predictability": 0.8, "seen_predictability": 0.0, "predictability_error": 0.05}
    taken = follow(refused, reading_of(0.1, step=205, **by_heart), RULE, never)
    assert (taken.state, taken.since_step) == ("lost", 205)


def test_a_change_before_a_new_announcement_does_not_make_a_spike_after_it_last() -> None:
    lost = replace(ANNOUNCED, state="lost", changed_since=200, has_memorised=True)
    again = follow(lost, reading_of(0.9, step=300), RULE)
    assert (again.state, again.changed_since) == ("generalised", None)
    spike = follow(again, reading_of(0.9, step=301, train_accuracy=0.1, kept=0.1), RULE)
    assert spike.state == "generalised"
