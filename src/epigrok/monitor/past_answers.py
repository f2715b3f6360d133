"""What the network answered at earlier looks: whether answers stay, and which of them stood first.

A rule is learnt from the seen inputs, so answers to both sets settle together, or those to the seen
ones first. Where most watched answers stood before the seen ones were learnt, what was learnt since
did not concern them. A network with large weights learns rows by heart like that: it hardly moves
between them.

Letters: N rows of a set, L looks.
"""

from collections.abc import Iterable, Mapping
from math import hypot, nan, sqrt

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from epigrok.monitor.measuring import SEEN, Mean
from epigrok.monitor.rule import StateRule
from epigrok.monitor.tolerance import chance_corrected_agreement

AnswersOfSets = Mapping[str, tuple[int, ...]]
"""Set -> the network's answers to its rows at one look."""
_CLOSE = 1.02
"""Of looks whose steps are closer than this factor, only some keep their answers."""


class PastAnswers:
    """The answers of earlier looks that later ones are compared with."""

    def __init__(self, rule: StateRule) -> None:
        self._rule = rule
        self.of_steps: dict[int, AnswersOfSets] = {}

    def at(self, step: int | None) -> AnswersOfSets:
        """The answers of that look; none if it was not kept."""
        return self.of_steps.get(step, {}) if step is not None else {}

    def earlier(self, step: int) -> AnswersOfSets:
        """Those of the latest look that is early enough to compare steady answers with."""
        return self.at(earlier_step(self.of_steps, step, self._rule))

    def settled_ahead(self, now: AnswersOfSets) -> dict[str, Mean]:
        """By how much more of a set's answers than of the seen ones stood before these were learnt.

        That is at the last look at which hardly any seen answer was that of now. NaN where no such
        look was made.
        """
        step = self._last_unlearnt(now[SEEN])
        if step is None:
            return dict.fromkeys(now, Mean())
        then = self.at(step)
        kappa = {name: agreement(then.get(name, ()), own) for name, own in now.items()}
        error = {name: _error(kappa[name], own) for name, own in now.items()}
        return {
            name: Mean(kappa[name] - kappa[SEEN], hypot(error[name], error[SEEN])) for name in now
        }

    def forget(self, name: str) -> None:
        """Leave a set out of all looks: its rows are others from now on."""
        self.of_steps = {
            step: {which: found for which, found in answers.items() if which != name}
            for step, answers in self.of_steps.items()
        }

    def remember(self, step: int, answers: AnswersOfSets, sure_steps: Iterable[int | None]) -> None:
        """Keep a look's answers and those of some earlier looks: 25 for every tenfold of steps."""
        *_, last_but_one, last = 0, 0, *self.of_steps
        kept, sure = {**self.of_steps, step: answers}, set(sure_steps)
        if last < _CLOSE * last_but_one and last not in sure:
            del kept[last]
        earlier = earlier_step(kept, step, self._rule) or 0
        # Of old looks so many that one is left from when the seen inputs had hardly been learnt.
        needed: list[int] = []
        for at in kept:
            is_apart = not needed or at >= self._rule.steady_over * needed[-1]
            if is_apart or at >= earlier or at in sure:
                needed.append(at)
        self.of_steps = {at: kept[at] for at in needed}

    def _last_unlearnt(self, seen_now: tuple[int, ...]) -> int | None:
        """The last look whose answers to the seen inputs were hardly those of now."""
        seen = {at: found.get(SEEN, ()) for at, found in self.of_steps.items()}
        alike = {at: found for at, found in seen.items() if found and len(found) == len(seen_now)}
        if not alike:
            return None
        kappa_L = agreements(list(alike.values()), seen_now)
        most = self._rule.unlearnt_up_to
        return max((at for at, kappa in zip(alike, kappa_L) if kappa <= most), default=None)


def earlier_step(steps: Iterable[int], step: int, rule: StateRule) -> int | None:
    """The latest of these steps that is early enough to compare answers with; None if none is.

    Never step 0: any number of steps is a tenth more than that.
    """
    early = (at for at in steps if 0 < at < step and rule.steady_over * at <= step)
    return max(early, default=None)


def agreement(before: tuple[int, ...], now: tuple[int, ...]) -> float:
    """Cohen's κ between the answers of two looks; NaN where there is nothing to compare."""
    if not before or len(before) != len(now):
        return nan
    return float(agreements([before], now))


def agreements(before: list[tuple[int, ...]], now: tuple[int, ...]) -> Float[Tensor, " L"]:
    """Cohen's κ between the answers of each earlier look and those of now."""
    # Through NumPy, which reads nested tuples five times as fast as torch. Renumbered, because a
    # vocabulary has many more answers than are given.
    given, rows_LN = torch.from_numpy(np.array([now, *before])).unique(return_inverse=True)
    # Answers that are not known, as of logits that are not finite, stay below zero.
    rows_LN -= int((given < 0).sum())
    return chance_corrected_agreement(rows_LN[0], rows_LN[1:], len(given))


def _error(kappa: float, now: tuple[int, ...]) -> float:
    """Standard error of κ with these answers, whose shares are taken as known."""
    counts_C = torch.tensor(now, device="cpu").unique(return_counts=True)[1].double()
    chance = float((counts_C / len(now)).square().sum())
    if chance == 1.0:
        return nan
    share = min(1.0, chance + max(kappa, 0.0) * (1.0 - chance))
    # As if half a row more differed: where none does, the error is not zero.
    share = min(share, 1.0 - 0.5 / len(now))
    return sqrt(share * (1.0 - share) / len(now)) / (1.0 - chance)
