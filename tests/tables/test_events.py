"""When runs fitted, generalised and were most uncertain, over the runs of a setting."""

from pathlib import Path

import pytest
from table_files import write_table

from epigrok.records.directory import RunDirectory
from epigrok.sweeps.description import Sweep, prepare
from epigrok.tables import open_sweep
from epigrok.tables.events import rows_by_run, setting_events, times_by_run
from epigrok.tables.groups import settings

STEPS = (0, 10, 20, 30)
FITTED = (0.0, 1.0, 1.0, 1.0)
NEVER = (0.0, 0.1, 0.2, 0.2)


def write_curves(run: RunDirectory, accuracy: tuple[float, ...], eu: tuple[float, ...]) -> None:
    """The point fits training at step 10; `laplace` is uncertain on `id_val`."""
    rows = []
    for k, step in enumerate(STEPS):
        for split, right in (("id_train", FITTED[k]), ("id_val", accuracy[k])):
            keys = {"step": step, "split": split, "num_sequences": 8, "accuracy_final": right}
            uncertain = eu[k] if split == "id_val" else 0.0
            rows.append({**keys, "posterior": "point", "num_samples": 1, "epistemic_final": 0.0})
            rows.append(
                {**keys, "posterior": "laplace", "num_samples": 4, "epistemic_final": uncertain}
            )
    write_table(run, "metrics", rows)


@pytest.fixture
def runs(tmp_path: Path) -> list[RunDirectory]:
    sweep = Sweep(name="s", methods=("classic",), seeds=(0, 1, 2))
    return list(prepare(tmp_path, sweep).values())


def test_times_are_told_run_by_run(runs: list[RunDirectory], tmp_path: Path) -> None:
    write_curves(runs[0], (0.0, 0.0, 1.0, 1.0), (0.1, 0.8, 0.2, 0.1))
    write_curves(runs[1], NEVER, (0.1, 0.2, 0.8, 0.8))
    found = times_by_run(open_sweep(tmp_path))
    assert found.keys() == {run.path.name for run in runs[:2]}
    first, second = (
        next(times for times in found[run.path.name] if times.split == "id_val") for run in runs[:2]
    )
    assert (first.fitted_step, first.peak_step, first.generalised_step) == (10, 10, 20)
    assert first.lead_of_peak == 10
    assert (second.peak_step, second.generalised_step) == (20, None)


def test_events_are_medians_over_the_runs(runs: list[RunDirectory], tmp_path: Path) -> None:
    write_curves(runs[0], (0.0, 0.0, 1.0, 1.0), (0.1, 0.8, 0.2, 0.1))
    write_curves(runs[1], (0.0, 0.0, 0.0, 1.0), (0.1, 0.4, 0.5, 0.05))
    write_curves(runs[2], NEVER, (0.1, 0.2, 0.6, 0.6))
    (setting,) = settings(open_sweep(tmp_path))
    events = setting_events(setting)[("id_val", "laplace")]
    assert (events.num_runs, events.num_generalised, events.num_led) == (3, 2, 2)
    assert events.peak_step == 20
    assert events.peak_epistemic == 0.6
    assert events.generalised_step == 25
    # 0.2 of 0.8 and 0.05 of 0.5 when they generalised; 1/8, 1/10 and 1 at the end.
    assert events.share_when_generalised == pytest.approx((0.25 + 0.1) / 2)
    assert events.final_share == pytest.approx(0.125)
    assert events.sentence() == (
        "EU of laplace on id_val peaks at step 20 (0.6 nats) and is at 17.5 % of it when accuracy "
        "passes 0.95 (step 25 in 2 of 3 runs, after the peak in 2 of them); it ends at 12.5 %."
    )


def test_a_setting_that_never_generalised_says_so(runs: list[RunDirectory], tmp_path: Path) -> None:
    write_curves(runs[0], NEVER, (0.1, 0.2, 0.5, 0.25))
    (setting,) = settings(open_sweep(tmp_path))
    events = setting_events(setting)[("id_val", "laplace")]
    assert (events.generalised_step, events.share_when_generalised) == (None, None)
    assert events.sentence().endswith("ends at 50 % of it; accuracy does not stay above 0.95.")


def test_a_setting_without_uncertainty_says_so(runs: list[RunDirectory], tmp_path: Path) -> None:
    write_curves(runs[0], (0.0, 0.0, 1.0, 1.0), (0.0, 0.0, 0.0, 0.0))
    (setting,) = settings(open_sweep(tmp_path))
    events = setting_events(setting)[("id_val", "laplace")]
    assert (events.peak_step, events.num_led) == (None, 0)
    assert events.sentence() == "EU of laplace on id_val is zero throughout."


def test_rows_without_the_columns_of_events_are_left_out(
    runs: list[RunDirectory], tmp_path: Path
) -> None:
    keys = {"split": "id_val", "posterior": "point", "num_samples": 1}
    full = {**keys, "accuracy_final": 0.5, "epistemic_final": 0.0, "total_final": 0.25}
    write_table(runs[0], "metrics", [{"step": 5, **full}, {"step": 1, **full}, {"step": 7, **keys}])
    ((run_id, rows),) = rows_by_run(open_sweep(tmp_path), ("total_final",))
    assert run_id == runs[0].path.name
    assert [(row["step"], row["total_final"]) for row in rows] == [(1, 0.25), (5, 0.25)]
