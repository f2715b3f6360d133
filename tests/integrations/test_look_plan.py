"""When a callback looks and stops."""

import warnings
from typing import Any

import pytest
from taught_network import HELD_OUT_X, SEEN_X, untaught_network

from epigrok.errors import UserError
from epigrok.integrations.look_plan import LookPlan
from epigrok.monitor import GrokMonitor


def monitor() -> GrokMonitor:
    return GrokMonitor(untaught_network(), SEEN_X, {"held out": HELD_OUT_X})


def test_it_looks_every_so_many_steps_and_once_at_each() -> None:
    plan, watching = LookPlan(every=10), monitor()
    for step in (0, 5, 10, 10, 19, 20):
        plan.look(watching, step, {})
    assert [reading.step for reading in watching.readings] == [0, 10, 20]


def test_it_passes_on_what_the_loop_logs_under_these_names() -> None:
    plan, watching = LookPlan(every=1, train_accuracy="acc", train_loss="loss"), monitor()
    reading = plan.look(watching, 1, {"acc": 0.5, "loss": 2.0, "other": 1.0})
    assert reading is not None
    assert (reading.train_accuracy, reading.train_loss) == (0.5, 2.0)
    # Not logged yet: the monitor gates itself.
    reading = plan.look(watching, 2, {})
    assert reading is not None
    assert reading.train_accuracy is None


def test_a_name_under_which_nothing_is_logged_is_told_once() -> None:
    plan, watching = LookPlan(every=1, train_accuracy="typo"), monitor()
    logged = {"accuracy": 0.5, "loss": 2.0, "step": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # The loop may log after the callback, and less often than there are looks.
        plan.look(watching, 1, logged)
        reading = plan.look(watching, 2, {})
        assert reading is not None
        plan.look(watching, 3, reading.flat())
    message = "nothing has been logged as 'typo', so .* there are: accuracy, loss$"
    with pytest.warns(UserWarning, match=message):
        plan.look(watching, 4, logged | reading.flat())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan.look(watching, 5, logged)
    assert len(watching.readings) == 5


def test_it_stops_in_the_wanted_state_only() -> None:
    watching = monitor()
    assert LookPlan(stop_when="fitting").stops(watching)
    assert not LookPlan(stop_when="generalised").stops(watching)
    assert not LookPlan().stops(watching)


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("every", 0, "a whole number of steps from 1 on, got 0"),
        ("every", 2.5, "a whole number of steps from 1 on, got 2.5"),
        ("every", "10", "a whole number of steps from 1 on, got '10'"),
        ("stop_when", "generalized", "one of fitting, .* got 'generalized'"),
    ],
)
def test_looking_never_or_stopping_in_no_state_is_refused(
    field: str, value: Any, sentence: str
) -> None:
    plan = LookPlan()
    # Not as an argument: tests check the types of those.
    object.__setattr__(plan, field, value)
    with pytest.raises(UserError, match=sentence):
        plan.__post_init__()
