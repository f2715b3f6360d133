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
    """The constants of the rule."""

    generalised_from: float = 0.55
    """Ratio from which a set is generalised."""
    generalised_until: float = 0.4
    """Ratio below which a generalised set is lost."""
    memorising_below: float = 0.35
    """Ratio below which a fitted set that never generalised is memorised."""
    num_confirmations: int = 1
    """Readings in a row that must agree before the state changes."""
    fitted_from: float = 0.95
    """Training accuracy, exp(-training loss) or confidence on seen inputs: where fitting ends."""
    fitted_until: float = 0.8
    """Below this a training set that was fitted is not any more."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What one look at one watched set saw.

    The first of the three signs of fit that is given decides whether the training set is fitted.
    """

    step: int
    ratio: float
    log_standard_error: float = 0.0
    reason: str | None = None
    """Why the ratio is unreadable."""
    train_accuracy: float | None = None
    train_loss: float | None = None
    seen_confidence: float | None = None
    """Mean of the highest probability on the seen inputs; needs no label."""

    @property
    def fit(self) -> float:
        """How well the training set is fitted, from 0 to 1."""
        if self.train_accuracy is not None:
            return self.train_accuracy
        if self.train_loss is not None:
            return exp(-self.train_loss)
        if self.seen_confidence is not None:
            return self.seen_confidence
        raise ValueError(f"nothing in the reading of step {self.step} says what is fitted")


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
    if reading.fit < (rule.fitted_until if was_fitted else rule.fitted_from):
        why = "the training set is no longer fitted" if was_fitted else None
        return replace(standing, unreadable=why, pending=None, num_pending=0)
    if reading.reason is not None:
        return replace(standing, unreadable=reading.reason, pending=None, num_pending=0)
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


def _state_of(standing: Standing, ratio: float, rule: StateRule) -> State:
    if ratio >= rule.generalised_from:
        return "generalised"
    if standing.state == "generalised" and ratio >= rule.generalised_until:
        return "generalised"
    if standing.has_generalised:
        return "lost"
    return "memorising" if ratio < rule.memorising_below else "generalising"
