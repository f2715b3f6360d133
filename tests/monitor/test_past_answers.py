"""Answers of earlier looks: how they compare with those of now, and which are kept."""

from math import isnan

import pytest
import torch

from epigrok.monitor import SEEN, StateRule
from epigrok.monitor.past_answers import AnswersOfSets, PastAnswers, agreement, earlier_step

RULE = StateRule()
LEARNT = tuple(torch.arange(256).remainder(8).tolist())
"""The last answers to both sets: eight classes, all as frequent."""


def partly(share: float) -> tuple[int, ...]:
    """Answers of which this share, above chance, are the last ones."""
    changed = round((1.0 - share) * len(LEARNT) / 8) * 8
    # Shifted by one within a block of eight: every class loses as many as it gains.
    return tuple((a + 1) % 8 if n < changed else a for n, a in enumerate(LEARNT))


def looked(*shares: tuple[int, float, float]) -> PastAnswers:
    """After looks at these steps, with these shares of the last answers to seen and watched."""
    past = PastAnswers(RULE)
    for step, seen, watched in shares:
        past.remember(step, {SEEN: partly(seen), "held out": partly(watched)}, ())
    return past


NOW: AnswersOfSets = {SEEN: LEARNT, "held out": LEARNT}


def test_agreement_is_above_chance_and_unknown_where_rows_differ() -> None:
    assert agreement(LEARNT, LEARNT) == 1.0
    assert agreement((0,) * 256, LEARNT) == 0.0
    assert isnan(agreement((), LEARNT))
    assert isnan(agreement(LEARNT[:10], LEARNT))


def test_no_step_is_a_tenth_after_step_0() -> None:
    assert earlier_step([0, 100, 109], 119, RULE) == 100
    assert earlier_step([0], 100, RULE) is None


def test_watched_answers_that_stood_before_the_seen_ones_were_learnt_are_ahead() -> None:
    past = looked((10, 0.0, 0.0), (100, 0.0, 0.25), (200, 0.125, 0.75), (300, 0.5, 0.875))
    found = past.settled_ahead(NOW)["held out"]
    # κ is (1 - 9/8·changed)-like: by hand, with chance 1/8.
    seen, watched = ((1 - changed - 1 / 8) / (7 / 8) for changed in (0.875, 0.25))
    assert found.value == pytest.approx(watched - seen)
    assert 0.01 < found.standard_error < 0.06


def test_what_is_learnt_together_or_from_the_seen_inputs_first_is_not_ahead() -> None:
    together = looked((10, 0.0, 0.0), (100, 0.25, 0.25), (200, 0.75, 0.75))
    assert abs(together.settled_ahead(NOW)["held out"].value) < 1e-9
    grokking = looked((10, 0.25, 0.0), (100, 1.0, 0.0), (1000, 1.0, 0.1), (2000, 1.0, 0.9))
    assert grokking.settled_ahead(NOW)["held out"].value < 0.0


def test_without_a_look_before_the_seen_inputs_were_learnt_nothing_is_known() -> None:
    late = looked((100, 0.5, 0.9), (200, 0.9, 1.0))
    assert isnan(late.settled_ahead(NOW)["held out"].value)


def test_a_look_before_they_were_learnt_is_kept_and_few_others() -> None:
    early = [(step, 0.0, 0.5) for step in range(100, 1000, 10)]
    past = looked(*early, *((step, 1.0, 1.0) for step in range(1000, 100_000, 100)))
    assert past.settled_ahead(NOW)["held out"].value > 0.4
    assert len(past.of_steps) < 3 * 25 + 10


def test_a_set_that_is_forgotten_is_compared_with_nothing() -> None:
    past = looked((10, 0.0, 0.9), (100, 1.0, 1.0))
    past.forget(SEEN)
    assert isnan(past.settled_ahead(NOW)["held out"].value)
    assert past.earlier(200).keys() == {"held out"}
