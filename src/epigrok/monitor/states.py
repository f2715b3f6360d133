"""The state of one watched set, from readings up to now only.

    fitting → memorising → generalising → generalised → lost

A set is *fitting* until the training inputs are fitted: before that both tolerances are small and
their ratio says nothing. Then the ratio decides. Below `threshold` the set is *memorising*, or
*lost* if it had generalised before. Above it the set is *generalising* until four things hold, and
then it has *generalised*:

* the ratio is two standard errors above the threshold that applies (see below), and at the head
  above the lowest of them;
* the answers agree with those of a look at least a tenth of the steps earlier. If nine in ten
  answers were right at both looks, at most two in ten can differ. A network that can only just
  memorise has a high ratio, because the margins of its training inputs are small; but its other
  answers keep changing;
* the answers to seen inputs are about as predictable from each other as the watched ones are from
  them (`by_heart`). A network that is smooth between rows it learnt by heart is as firm
  there as a rule is, and its answers are as steady;
* the watched answers did not stand earlier than the seen ones (`past_answers.py`). A network with
  large weights learns rows by heart and hardly moves between them, so its answers there are firm
  and steady from early on.

Which threshold applies depends on what was seen of the set since the fit. Just after the fit the
training inputs have small margins even while they are being memorised, so the ratio is high and on
its way down. A set that was seen memorising needs `threshold`. A set whose ratio has stayed up for
half as many steps again as it took needs `held_threshold`. A set of which neither is known yet
needs `fresh_threshold`, the highest. A lost set may generalise again.

A set is also *lost* when most of its answers are no longer those of the look that was first sure of
it: if they were right then, most are wrong now, whatever the ratio says. Later sure looks do not
take its place, because a set that is lost slowly stays sure for long. While the training set is
fitted anew the ratio says nothing, and a network that forgets both sets alike has a ratio of one. A
spike of the loss changes answers too, and breaks the fit; so without a fit the change must last.
Such a set has generalised again when the answers have come back, or when it was seen memorising
since. A high ratio alone will not do: the new answers are not those that were right.

A set is called *lost*, too, when a later look shows surely that its rows were learnt by heart: the
announcement is taken back, and may come again.

The head is read at every look, because that is cheap. Where it puts a set on the other side of the
threshold, the whole network is read too, and decides: behind a layer norm wrong answers can become
as firm at the head as right ones. Where it says no, it is not asked again at once; until then the
set stays what it is, unless it is taken back.

A ratio that cannot be read leaves the state as it was and says why; changed answers still count.
"""

from collections.abc import Callable
from dataclasses import replace
from math import exp, inf, isnan

from epigrok.monitor.rule import StateRule
from epigrok.monitor.standing import Reading, Standing, State
from epigrok.monitor.tolerance import ToleranceRatio

Confirm = Callable[[], ToleranceRatio]
"""Measures the ratio again, with noise on the whole network. Called only where it matters."""
_BY_HEART = (
    "these answers follow from those to the seen inputs, which do not follow from each other: the "
    "seen ones may be learnt by heart, or these inputs be easier"
)
_STOOD_EARLY = (
    "most of these answers stood before those to the seen inputs were learnt: the seen ones may be "
    "learnt by heart, or these inputs be easier"
)


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
    is_fitted = _is_fitted(reading, was_fitted, rule)
    before, standing = standing, _compared(standing, reading, is_fitted, rule)
    if not is_fitted:
        is_same = standing.state == before.state
        why = _why_not_fitted(reading, was_fitted) if is_same else reading.reason
        return replace(standing, unreadable=why, above_since=None)
    ratio = ToleranceRatio(
        value=reading.ratio, log_standard_error=reading.log_standard_error, reason=reading.reason
    )
    has_held = _has_held(standing, reading, rule)
    needed = _needed_ratio(standing, has_held, rule)
    asks_network = confirm is not None and _would_change_sides(standing, reading, needed, rule)
    if asks_network and reading.step < rule.ask_again_over * (standing.refused_step or 0):
        return _while_refused(_marked(standing, reading, has_held, rule), reading, rule)
    if confirm is not None and asks_network:
        ratio = confirm()
    if ratio.reason is not None:
        if asks_network:
            standing = _refused(standing, reading, rule)
        return replace(standing, unreadable=ratio.reason)
    standing = _marked(standing, reading, has_held, rule)
    lowest, highest = ratio.interval(rule.deviations)
    state, why = _state_of(standing, ratio.value, rule), None
    is_sure = lowest >= needed and _is_sure_at_head(reading, rule)
    if state == "generalised" and _is_taken_back(reading, rule):
        state, why = "lost", _BY_HEART
    elif is_sure and (held_back := _why_held_back(reading, rule)) is None:
        # Answers are compared with the first sure look of a stay, however slowly they drift.
        sure_step = standing.sure_step if standing.state == "generalised" else None
        sure_step = reading.step if sure_step is None else sure_step
        state = "generalised"
        standing = replace(standing, sure_step=sure_step, has_changed=False, changed_since=None)
    elif is_sure and state != "generalised":
        why = held_back
    was_refused = asks_network and (state == "generalised") == (standing.state == "generalised")
    return replace(
        standing,
        state=state,
        since_step=standing.since_step if state == standing.state else reading.step,
        unreadable=why,
        refused_step=reading.step if was_refused else standing.refused_step,
        has_generalised=standing.has_generalised or state == "generalised",
        has_memorised=standing.has_memorised or highest < rule.threshold,
    )


def _refused(standing: Standing, reading: Reading, rule: StateRule) -> Standing:
    """The standing after the whole network could not be read: the head has to do, once fitted."""
    standing = replace(standing, refused_step=reading.step)
    if standing.state != "fitting":
        return standing
    state = _state_of(standing, reading.ratio, rule)
    return replace(standing, state=state, since_step=reading.step)


def _while_refused(standing: Standing, reading: Reading, rule: StateRule) -> Standing:
    """The standing while the whole network, which did not confirm a change, is not asked again."""
    if standing.state == "generalised" and _is_taken_back(reading, rule):
        return replace(standing, state="lost", since_step=reading.step, unreadable=_BY_HEART)
    why = f"the whole network did not agree at step {standing.refused_step}"
    return replace(standing, unreadable=why)


def _is_fitted(reading: Reading, was_fitted: bool, rule: StateRule) -> bool:
    if reading.train_accuracy is not None:
        fit, needed = reading.train_accuracy, rule.fitted_accuracy
    elif reading.train_loss is not None:
        fit, needed = exp(-reading.train_loss), rule.fitted_confidence
    elif reading.seen_confidence is not None:
        fit, needed = reading.seen_confidence, rule.fitted_confidence
        if not _is_steady_on_seen(reading, was_fitted, rule):
            return False
    else:
        raise ValueError(f"nothing in the reading of step {reading.step} says what is fitted")
    needed -= rule.fit_may_fall_by if was_fitted else 0.0
    return fit - reading.chance >= needed * (1.0 - reading.chance) > 0.0


def _is_steady_on_seen(reading: Reading, was_fitted: bool, rule: StateRule) -> bool:
    if rule.seen_steady_from is None:
        return True
    may_fall_by = rule.fit_may_fall_by if was_fitted else 0.0
    return reading.seen_steadiness >= rule.seen_steady_from - may_fall_by


def _compared(standing: Standing, reading: Reading, is_fitted: bool, rule: StateRule) -> Standing:
    """The standing after the answers were compared with those of the first sure look."""
    if reading.kept < rule.kept_from:
        since = reading.step if standing.changed_since is None else standing.changed_since
        standing = replace(standing, changed_since=since)
        lasts = since < reading.step >= rule.spike_over * since
        if standing.state != "generalised" or not (is_fitted or lasts):
            return standing
        # What was seen memorising was another fit: random labels learnt anew start high.
        return replace(
            standing, state="lost", since_step=reading.step, has_changed=True, has_memorised=False
        )
    standing = replace(standing, changed_since=None)
    if standing.has_changed and reading.kept >= rule.steady_from:
        return replace(standing, state="generalised", since_step=reading.step, has_changed=False)
    return standing


def _why_not_fitted(reading: Reading, was_fitted: bool) -> str | None:
    if reading.reason is not None:
        return reading.reason
    if was_fitted:
        return "the training set is no longer fitted"
    if any(
        sign is not None and isnan(sign) for sign in (reading.train_accuracy, reading.train_loss)
    ):
        return "the sign of fit that was passed is not a number"
    if reading.train_accuracy is None and reading.train_loss is None:
        return "seen inputs are not surely answered yet: pass train_accuracy to tell their fit"
    return None


def _is_sure_at_head(reading: Reading, rule: StateRule) -> bool:
    """Whether answers are steady, and firm at the head too."""
    lowest = reading.ratio / exp(rule.deviations * reading.log_standard_error)
    return lowest >= rule.head_threshold and reading.steadiness >= rule.steady_from


def _why_held_back(reading: Reading, rule: StateRule) -> str | None:
    """What says that rows were learnt by heart, although the ratio is high."""
    if _is_by_heart(reading, rule, rule.by_heart_share):
        return _BY_HEART
    error = rule.settled_ahead_deviations * reading.settled_ahead_error
    return _STOOD_EARLY if reading.settled_ahead >= max(rule.settled_ahead_from, error) else None


def _is_taken_back(reading: Reading, rule: StateRule) -> bool:
    is_predicted = reading.predictability >= rule.taken_back_from
    return is_predicted and _is_by_heart(reading, rule, rule.taken_back_share)


def _is_by_heart(reading: Reading, rule: StateRule, share: float) -> bool:
    """Whether seen answers surely follow from each other much less than watched ones from them."""
    gap = reading.predictability - reading.seen_predictability
    is_wide = reading.seen_predictability < share * reading.predictability
    return is_wide and gap >= rule.by_heart_deviations * reading.predictability_error


def _needed_ratio(standing: Standing, has_held: bool, rule: StateRule) -> float:
    """The threshold that applies to a set."""
    if standing.has_memorised:
        return rule.threshold
    if standing.has_changed:
        return inf
    return rule.held_threshold if has_held else rule.fresh_threshold


def _has_held(standing: Standing, reading: Reading, rule: StateRule) -> bool:
    """Whether the ratio stayed above the threshold for a whole stretch, and did not fall."""
    # What began at step 0 would have held at once, whatever the stretch.
    if not standing.above_since or reading.step < rule.stretch * standing.above_since:
        return False
    return reading.ratio >= max(rule.threshold, rule.may_fall_to * standing.above_from)


def _marked(standing: Standing, reading: Reading, has_held: bool, rule: StateRule) -> Standing:
    """The standing with the stretch that the next reading is judged by."""
    if reading.reason is not None:
        return standing
    if not reading.ratio >= rule.threshold:
        return replace(standing, above_since=None)
    since = standing.above_since
    if since is None or (reading.step >= rule.stretch * since and not has_held):
        return replace(standing, above_since=reading.step, above_from=reading.ratio)
    return standing


def _would_change_sides(
    standing: Standing, reading: Reading, needed: float, rule: StateRule
) -> bool:
    if reading.reason is not None:
        return False
    if standing.state == "generalised":
        return reading.ratio < rule.threshold
    is_sure = _is_sure_at_head(reading, rule) and _why_held_back(reading, rule) is None
    return reading.ratio >= needed and is_sure


def _state_of(standing: Standing, ratio: float, rule: StateRule) -> State:
    """The state after a ratio that announces nothing."""
    if ratio < rule.threshold:
        return "lost" if standing.has_generalised else "memorising"
    return standing.state if standing.has_generalised else "generalising"
