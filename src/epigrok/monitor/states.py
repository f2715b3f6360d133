"""The state of one watched set, from readings up to now only.

    fitting → memorising → generalising → generalised → lost

A set is *fitting* until the training inputs are fitted: before that both tolerances are small and
their ratio says nothing. *Generalising* is in between, which may last: half-learnt is a state too.
*Lost* is a set that was generalised and no longer is. A reading that cannot be read leaves the
state as it was and says why.
"""

from dataclasses import dataclass, replace
from math import exp
from typing import Literal

State = Literal["fitting", "memorising", "generalising", "generalised", "lost"]


@dataclass(frozen=True, kw_only=True)
class StateRule:
    """The constants of the rule.

    Chosen on the development kinds of `benchmarks/detection` alone, 36 runs of 18 recipes, before
    any run of the held-out kinds was made. There, with the training set fitted, two readings in a
    row of a set that had not generalised (at most half way above chance) never both passed 0.41.
    The highest were two classes with random labels and five classes with half of them wrong; all
    others stayed below 0.34. Sets that had generalised ended at 0.39 and 0.41 (Muon, soon after its
    transition) and otherwise at 0.66 to 1.02.
    """

    generalised_from: float = 0.5
    """Ratio from which a set is generalised."""
    generalised_until: float = 0.33
    """Ratio below which a generalised set is lost."""
    memorising_below: float = 0.33
    """Ratio below which a fitted set that never generalised is memorised."""
    num_confirmations: int = 2
    """Readings in a row that must agree before the state changes."""
    largest_log_error: float = 0.5
    """Standard error of the log ratio above which a reading says nothing."""
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
    Confidence needs no label. It stays low under losses that do not ask for it (squared errors,
    label smoothing); the set then stays *fitting*, and a training metric should be passed.
    """

    step: int
    ratio: float
    num_classes: int
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
    pending: State | None = None
    num_pending: int = 0
    has_generalised: bool = False


def follow(standing: Standing, reading: Reading, rule: StateRule) -> Standing:
    """The standing after one more reading."""
    was_fitted = standing.state != "fitting"
    if not _is_fitted(reading, was_fitted, rule):
        why = "the training set is no longer fitted" if was_fitted else None
        return replace(standing, unreadable=why, pending=None, num_pending=0)
    reason = reading.reason
    if reason is None and reading.log_standard_error > rule.largest_log_error:
        reason = "too few rows: the ratio is known to a factor of two at best"
    if reason is not None:
        return replace(standing, unreadable=reason, pending=None, num_pending=0)
    state = _state_of(standing, reading.ratio, rule)
    if state == standing.state:
        return replace(standing, unreadable=None, pending=None, num_pending=0)
    num_pending = standing.num_pending + 1 if state == standing.pending else 1
    if num_pending < rule.num_confirmations:
        return replace(standing, unreadable=None, pending=state, num_pending=num_pending)
    return Standing(
        state=state,
        since_step=reading.step,
        has_generalised=standing.has_generalised or state == "generalised",
    )


def _is_fitted(reading: Reading, was_fitted: bool, rule: StateRule) -> bool:
    chance = 1.0 / reading.num_classes
    if reading.train_accuracy is not None:
        fit, needed = reading.train_accuracy, rule.fitted_accuracy
    elif reading.train_loss is not None:
        fit, needed = exp(-reading.train_loss), rule.fitted_confidence
    elif reading.seen_confidence is not None:
        fit, needed = reading.seen_confidence, rule.fitted_confidence
    else:
        raise ValueError(f"nothing in the reading of step {reading.step} says what is fitted")
    above_chance = (fit - chance) / (1.0 - chance)
    return above_chance >= needed - (rule.fit_may_fall_by if was_fitted else 0.0)


def _state_of(standing: Standing, ratio: float, rule: StateRule) -> State:
    if ratio >= rule.generalised_from:
        return "generalised"
    if standing.state == "generalised" and ratio >= rule.generalised_until:
        return "generalised"
    if standing.has_generalised:
        return "lost"
    return "memorising" if ratio < rule.memorising_below else "generalising"
