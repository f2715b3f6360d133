"""What one look saw of a watched set, and where the set stands after it: see `states.py`."""

from dataclasses import dataclass
from math import nan
from typing import Literal

State = Literal["fitting", "memorising", "generalising", "generalised", "lost"]


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
    """Cohen's κ between the answers to the watched inputs and those of an earlier look; nan where
    there is none that is early enough."""
    log_standard_error: float = 0.0
    reason: str | None = None
    """Why the ratio is unreadable."""
    kept: float = nan
    """Cohen's κ between the answers to the watched inputs and those of `Standing.sure_step`; nan
    where there is none."""
    train_accuracy: float | None = None
    train_loss: float | None = None
    seen_confidence: float | None = None
    """Mean of the highest probability on the seen inputs."""
    seen_steadiness: float = nan
    """The same as `steadiness` of the seen inputs; needed with their confidence only."""
    predictability: float = nan
    """How well the watched answers follow from the seen ones; nan where nobody can say."""
    seen_predictability: float = nan
    """How well each seen answer follows from the others, answers counted as often as watched."""
    predictability_error: float = nan
    """Standard error of the difference between the two."""
    settled_ahead: float = nan
    """By how much more of the watched answers than of the seen ones stood early; nan where nobody
    looked early enough."""
    settled_ahead_error: float = nan


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a set stands: its state, since when, and what the next reading is judged by."""

    state: State = "fitting"
    since_step: int = 0
    unreadable: str | None = None
    """Why the last reading changed nothing, or took an announcement back."""
    has_generalised: bool = False
    has_memorised: bool = False
    """Whether a look was surely below the threshold."""
    above_since: int | None = None
    """Step at which the stretch began that the ratio has to hold for; None below the threshold."""
    above_from: float = 0.0
    """The ratio there, with noise on the head."""
    sure_step: int | None = None
    """The first look, since the set was last announced, at which all held that this needs."""
    changed_since: int | None = None
    """Step at which most answers were first seen to differ from those; None if they do not."""
    has_changed: bool = False
    """Whether the set was lost because they do."""
    refused_step: int | None = None
    """When the whole network last did not confirm a change."""
