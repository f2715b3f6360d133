"""The causal rule: what each reading may and may not change."""

from dataclasses import replace

import pytest

from epigrok.monitor.states import Reading, Standing, StateRule, follow

RULE = StateRule(
    generalised_from=0.6,
    generalised_until=0.4,
    memorising_below=0.3,
    num_confirmations=1,
    fitted_from=0.9,
    fitted_until=0.7,
)


def states(ratios: list[float], fits: list[float] | None = None, rule: StateRule = RULE) -> str:
    """One letter per reading: Fitting, Memorising, In between, Generalised, Lost."""
    letter = {"generalising": "I"}
    standing, seen = Standing(), ""
    for step, ratio in enumerate(ratios):
        fit = 1.0 if fits is None else fits[step]
        standing = follow(standing, Reading(step=step, ratio=ratio, train_accuracy=fit), rule)
        seen += letter.get(standing.state, standing.state[0].upper())
    return seen


def test_a_run_that_groks_goes_through_all_states() -> None:
    fits = [0.1, 0.5, 1.0, 1.0, 1.0, 1.0]
    assert states([1.0, 0.9, 0.1, 0.2, 0.45, 0.9], fits) == "FFMMIG"


def test_a_high_ratio_before_the_fit_says_nothing() -> None:
    assert states([1.0, 1.0, 1.0], [0.1, 0.5, 0.89]) == "FFF"


def test_generalised_is_kept_through_a_dip_and_lost_below_it() -> None:
    assert states([0.7, 0.5, 0.41, 0.39, 0.5, 0.7]) == "GGGLLG"


def test_a_set_that_never_generalised_is_not_lost() -> None:
    assert states([0.5, 0.1, 0.5, 0.2]) == "IMIM"


def test_a_change_waits_for_its_confirmation() -> None:
    rule = replace(RULE, num_confirmations=2)
    assert states([0.1, 0.1, 0.9, 0.1, 0.9, 0.9], rule=rule) == "FMMMMG"


def test_a_spike_of_the_training_loss_changes_no_state() -> None:
    assert states([0.9, 0.1, 0.9], [1.0, 0.3, 1.0]) == "GGG"
    standing = Standing(state="generalised", has_generalised=True)
    after = follow(standing, Reading(step=5, ratio=0.1, train_accuracy=0.3), RULE)
    assert after.unreadable == "the training set is no longer fitted"


def test_an_unreadable_ratio_leaves_the_state_and_says_why() -> None:
    standing = Standing(state="memorising", since_step=3)
    reading = Reading(step=7, ratio=float("nan"), reason="too few rows", train_accuracy=1.0)
    after = follow(standing, reading, RULE)
    assert (after.state, after.since_step, after.unreadable) == ("memorising", 3, "too few rows")


def test_the_state_depends_on_readings_so_far_only() -> None:
    ratios = [0.1, 0.5, 0.7, 0.2, 0.9, 0.35, 0.65]
    whole = states(ratios)
    assert all(states(ratios[:end]) == whole[:end] for end in range(len(ratios)))


def test_the_first_sign_of_fit_that_is_given_decides() -> None:
    reading = Reading(step=0, ratio=1.0, train_loss=0.1, seen_confidence=0.2)
    assert reading.fit == pytest.approx(0.904837418)
    assert replace(reading, train_accuracy=0.5).fit == 0.5
    assert replace(reading, train_loss=None).fit == 0.2
    with pytest.raises(ValueError, match="step 0"):
        _ = Reading(step=0, ratio=1.0).fit
