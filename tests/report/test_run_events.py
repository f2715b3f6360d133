"""Runs with their events, in groups and in order."""

from pathlib import Path

from made_runs import make_sweep

from epigrok.records.status import read_statuses
from epigrok.report.run_events import Median, grouped, ordered, run_events, setting_fields
from epigrok.tables import open_sweep


def test_a_median_counts_only_the_runs_that_have_the_quantity() -> None:
    assert Median.of([3.0, None, 1.0, 2.0]) == Median(2.0, 3)
    assert Median.of([None]) == Median(None, 0)


def test_every_run_has_events_per_split_and_posterior(tmp_path: Path) -> None:
    make_sweep(tmp_path, generalised=[700, None], collapsed=[600, None])
    statuses = read_statuses(tmp_path)
    found = run_events(open_sweep(tmp_path), statuses)
    assert len(found) == 4
    unseen = [events for events in found if events.times.split == "id_val"]
    assert {events.times.generalised_step for events in unseen} == {700, None}
    groups = grouped(found, ["preset"])
    assert set(groups) == {("classic", "id_train", "laplace"), ("classic", "id_val", "laplace")}
    assert all(len(members) == 2 for members in groups.values())


def test_seeds_do_not_make_settings_but_order_runs(tmp_path: Path) -> None:
    make_sweep(tmp_path, generalised=[700, 800], collapsed=[600, 600])
    statuses = read_statuses(tmp_path)
    assert setting_fields(statuses) == ["preset"]
    in_order = ordered(reversed(statuses), ["run_seed"])
    assert [status.config["run_seed"] for status in in_order] == [0, 1]
