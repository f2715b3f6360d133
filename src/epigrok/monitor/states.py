"""The state of one watched set, from readings up to now only.

    fitting → memorising → generalising → generalised → lost

A set is *fitting* until the training inputs are fitted: before that both tolerances are small and
their ratio says nothing. Then the ratio is compared with one threshold. Below it the set is
*memorising*, or *lost* where it had generalised. Above it the set is *generalising*, until two
more things are true and it has *generalised*:

* the ratio is above the threshold by two standard errors;
* the answers are those of the look before. If nine in ten were right at both looks, at most two in
  ten can differ. A network that is only just able to memorise has a high ratio, since the margins
  of its training inputs are small; but its other answers change all the time.

The head is read at every look, because that is cheap. Where it puts a set on the other side of the
threshold, the whole network is read too, and decides: behind a layer norm wrong answers can become
as firm at the head as right ones.

A reading that cannot be read leaves the state as it was and says why.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp
from typing import Literal

from epigrok.monitor.tolerance import ToleranceRatio

Confirm = Callable[[], ToleranceRatio]
"""Measures the ratio again, with noise on the whole network. Called only where it matters."""
State = Literal["fitting", "memorising", "generalising", "generalised", "lost"]


@dataclass(frozen=True, kw_only=True)
class StateRule:
    """The constants of the rule.

    Chosen on the development and the held-out kinds of `benchmarks/detection` together, 114 runs
    (39 read anew at every look, of 75 the stored looks, where every fourth has the whole network),
    before any run of the fresh kinds was made. With two standard errors, thresholds from 0.35 to
    0.38 gave no false alarm and no miss there. Two standard errors below, ratios of the whole
    network were at most 0.35 where a set had not generalised (parity of few inputs, at the first
    look after the fit) and ended at 0.38 or more where it had (S4, where training stops soon after
    the transition).
    """

    threshold: float = 0.37
    """Ratio that separates sets that have generalised from sets that have not."""
    deviations: float = 2.0
    """Standard errors by which a ratio must pass the threshold."""
    steady_from: float = 0.8
    """Agreement with the answers of the look before, above chance, from which they are steady."""
    fitted_accuracy: float = 0.95
    """Training accuracy, above chance, at which fitting ends."""
    fitted_confidence: float = 0.8
    """The same for exp(-training loss) and for the confidence on seen inputs."""
    fit_may_fall_by: float = 0.15
    """A training set that was fitted stays so down to this much below."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What one look at one watched set saw.

    The first of the three signs of fit that is given decides whether the training set is fitted.
    Confidence needs no label. It stays low under losses that do not ask for it (squared errors) or
    cannot reach it (answers nobody can know); the set then stays *fitting*, and says so.
    """

    step: int
    ratio: float
    """τ(watched)/τ(seen) with noise on the head."""
    chance: float
    """Accuracy that guessing would have on the seen inputs: Σ_c p(c)² with the shares p of their
    answers. 1/C where all classes are as frequent; near one where one answer is nearly all."""
    steadiness: float
    """Cohen's κ between the answers to the watched inputs and those of the look before; nan at the
    first look."""
    log_standard_error: float = 0.0
    reason: str | None = None
    """Why the ratio is unreadable."""
    train_accuracy: float | None = None
    train_loss: float | None = None
    seen_confidence: float | None = None
    """Mean of the highest probability on the seen inputs."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a set stands: its state, since when, and what the next reading is judged by."""

    state: State = "fitting"
    since_step: int = 0
    unreadable: str | None = None
    """Why the last reading changed nothing."""
    has_generalised: bool = False


def follow(
    standing: Standing, reading: Reading, rule: StateRule, confirm: Confirm | None = None
) -> Standing:
    """The standing after one more reading.

    Args:
        standing: Where the set stood before.
        reading: What was seen, with noise on the head.
        rule: The constants.
        confirm: Called where the reading would change a set to or from "generalised"; what it
            returns decides in the reading's place. Without it the head decides.
    """
    was_fitted = standing.state != "fitting"
    if not _is_fitted(reading, was_fitted, rule):
        return replace(standing, unreadable=_why_not_fitted(reading, was_fitted))
    ratio = ToleranceRatio(
        value=reading.ratio, log_standard_error=reading.log_standard_error, reason=reading.reason
    )
    if confirm is not None and _would_change_sides(standing, reading, rule):
        ratio = confirm()
    if ratio.reason is not None:
        return replace(standing, unreadable=ratio.reason)
    state = _state_of(standing, ratio, _is_steady(reading, rule), rule)
    if state == standing.state:
        return replace(standing, unreadable=None)
    return Standing(
        state=state,
        since_step=reading.step,
        has_generalised=standing.has_generalised or state == "generalised",
    )


def _is_fitted(reading: Reading, was_fitted: bool, rule: StateRule) -> bool:
    if reading.train_accuracy is not None:
        fit, needed = reading.train_accuracy, rule.fitted_accuracy
    elif reading.train_loss is not None:
        fit, needed = exp(-reading.train_loss), rule.fitted_confidence
    elif reading.seen_confidence is not None:
        fit, needed = reading.seen_confidence, rule.fitted_confidence
    else:
        raise ValueError(f"nothing in the reading of step {reading.step} says what is fitted")
    needed -= rule.fit_may_fall_by if was_fitted else 0.0
    return fit - reading.chance >= needed * (1.0 - reading.chance) > 0.0


def _why_not_fitted(reading: Reading, was_fitted: bool) -> str | None:
    if was_fitted:
        return "the training set is no longer fitted"
    if reading.train_accuracy is None and reading.train_loss is None:
        return "seen inputs are answered without confidence: pass train_accuracy to tell its fit"
    return None


def _is_steady(reading: Reading, rule: StateRule) -> bool:
    return reading.steadiness >= rule.steady_from


def _would_change_sides(standing: Standing, reading: Reading, rule: StateRule) -> bool:
    if reading.reason is not None:
        return False
    if standing.state == "generalised":
        return reading.ratio < rule.threshold
    return reading.ratio >= rule.threshold and _is_steady(reading, rule)


def _state_of(standing: Standing, ratio: ToleranceRatio, is_steady: bool, rule: StateRule) -> State:
    if ratio.value < rule.threshold:
        return "lost" if standing.has_generalised else "memorising"
    lowest, _ = ratio.interval(rule.deviations)
    if lowest >= rule.threshold and is_steady:
        return "generalised"
    return standing.state if standing.has_generalised else "generalising"
