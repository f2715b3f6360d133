"""The course of a run: accuracy, and what was read without labels."""

from pathlib import Path

import pytest
from made_courses import MEMORISING, announced_at, made_course, rising
from made_runs import PEAK_NATS, announce, make_sweep

from epigrok.records.status import read_statuses
from epigrok.report.courses import courses
from epigrok.tables import open_sweep


def test_a_course_joins_accuracy_uncertainty_and_states(tmp_path: Path) -> None:
    (run,) = make_sweep(tmp_path, generalised=[700], collapsed=[600])
    announce(run, 800)
    (course,) = courses(open_sweep(tmp_path), read_statuses(tmp_path))
    assert (course.fitted_step, course.generalised_step) == (200, 700)
    assert course.announced is not None
    assert (course.announced.step, course.lag) == (800, 100)
    assert course.posterior == "laplace"
    assert course.peak_epistemic == PEAK_NATS
    assert course.looks[2].train_accuracy == 1.0


def test_the_ratio_says_nothing_before_the_training_set_is_fitted() -> None:
    course = made_course(rising(700), announced_at(800))
    assert [look.ratio for look in course.looks[:2]] == [None, None]
    assert course.looks[2].ratio == pytest.approx(0.2)


def test_runs_that_nobody_watched_have_a_course_too() -> None:
    course = made_course(rising(700))
    assert not course.is_watched
    assert course.announced is None
    assert course.lag is None


@pytest.mark.parametrize(
    ("accuracy", "fitted_from", "fate"),
    [
        (rising(700), 200, "generalised"),
        ([0.0] * 5 + [0.6] + [0.2] * 5, 200, "lost"),
        ([0.0] * 10 + [0.49], 200, "memorised"),
        ([0.0] * 10 + [0.51], 200, "between"),
        ([0.0] * 11, 2000, "unfitted"),
    ],
)
def test_how_a_run_ended(accuracy: list[float], fitted_from: int, fate: str) -> None:
    assert made_course(accuracy, MEMORISING, fitted_from=fitted_from).fate == fate
