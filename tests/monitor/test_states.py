"""The causal rule: what each reading may and may not change."""

from dataclasses import replace

import pytest

from epigrok.monitor.states import Reading, Standing, StateRule, follow

RULE = StateRule(
    generalised_from=0.6,
    generalised_until=0.4,
    memorising_below=0.3,
    num_confirmations=1,
    fitted_accuracy=0.9,
    fitted_confidence=0.8,
    fit_may_fall_by=0.2,
)
MANY = 1_000_000  # classes, so that chance is nothing


def states(ratios: list[float], fits: list[float] | None = None, rule: StateRule = RULE) -> str:
    """One letter per reading: Fitting, Memorising, In between, Generalised, Lost."""
    letter = {"generalising": "I"}
    standing, seen = Standing(), ""
    for step, ratio in enumerate(ratios):
        fit = 1.0 if fits is None else fits[step]
        reading = Reading(step=step, ratio=ratio, num_classes=MANY, train_accuracy=fit)
        standing = follow(standing, reading, rule)
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
    reading = Reading(step=5, ratio=0.1, num_classes=MANY, train_accuracy=0.3)
    after = follow(standing, reading, RULE)
    assert after.unreadable == "the training set is no longer fitted"


def test_an_unreadable_ratio_leaves_the_state_and_says_why() -> None:
    standing = Standing(state="memorising", since_step=3)
    reading = Reading(
        step=7, ratio=float("nan"), num_classes=9, reason="too few rows", train_accuracy=1.0
    )
    after = follow(standing, reading, RULE)
    assert (after.state, after.since_step, after.unreadable) == ("memorising", 3, "too few rows")


def test_the_state_depends_on_readings_so_far_only() -> None:
    ratios = [0.1, 0.5, 0.7, 0.2, 0.9, 0.35, 0.65]
    whole = states(ratios)
    assert all(states(ratios[:end]) == whole[:end] for end in range(len(ratios)))


def test_an_uncertain_ratio_changes_nothing() -> None:
    reading = Reading(step=7, ratio=0.9, num_classes=9, log_standard_error=0.6, train_accuracy=1.0)
    after = follow(Standing(state="memorising"), reading, RULE)
    assert after.state == "memorising"
    assert after.unreadable is not None


@pytest.mark.parametrize(
    ("signs", "is_fitted"),
    [
        ({"train_accuracy": 0.96}, True),
        ({"train_accuracy": 0.94}, False),  # 0.88 above chance
        ({"train_loss": 0.1}, True),  # exp(-0.1) = 0.905, 0.81 above chance
        ({"train_loss": 0.2}, False),
        ({"seen_confidence": 0.91}, True),
        ({"seen_confidence": 0.89}, False),
        ({"train_accuracy": 0.5, "train_loss": 0.0, "seen_confidence": 1.0}, False),
        ({"train_loss": 1.0, "seen_confidence": 1.0}, False),
    ],
)
def test_the_first_sign_of_fit_decides_and_is_read_above_chance(
    signs: dict[str, float], is_fitted: bool
) -> None:
    after = follow(Standing(), Reading(step=0, ratio=0.1, num_classes=2, **signs), RULE)
    assert after.state == ("memorising" if is_fitted else "fitting")


def test_a_reading_without_a_sign_of_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="step 3"):
        follow(Standing(), Reading(step=3, ratio=1.0, num_classes=2), RULE)
