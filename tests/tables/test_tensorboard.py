"""Curves for TensorBoard."""

import errno
import os
import sys
from pathlib import Path

import pytest
from table_files import write_table

from epigrok import workspace
from epigrok.errors import UserError
from epigrok.sweeps.description import Sweep, prepare
from epigrok.tables import SweepStore, open_sweep
from epigrok.tables.tensorboard import curves, write_event_files


@pytest.fixture
def store(tmp_path: Path) -> SweepStore:
    """Two runs; the final evaluation of the first is no point of its curve."""
    sweep = Sweep(name="s", methods=("classic",), seeds=(0, 1))
    first, second = prepare(tmp_path / "sweep", sweep).values()
    keys = {"split": "id_val", "posterior": "laplace", "num_samples": 2, "num_sequences": 5}
    for run, accuracy in ((first, 0.25), (second, 0.75)):
        write_table(run, "metrics", [{"step": 10, **keys, "accuracy": accuracy}])
        write_table(run, "training", [{"step": 10, "loss": 0.5}])
    write_table(first, "final", [{"step": 10, **keys, "num_samples": 8, "accuracy": 0.125}])
    return open_sweep(tmp_path / "sweep").of_runs([first.path.name, second.path.name])


def test_every_metric_of_every_split_and_posterior_is_a_curve(store: SweepStore) -> None:
    first = store.of_runs(list(store.runs)[:1])
    assert list(curves(first)) == [
        ("accuracy/id_val/laplace", 0.25, 10),
        ("training/loss", 0.5, 10),
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_event_files_hold_the_curves_once(store: SweepStore, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for _ in range(2):
        assert write_event_files(store, tmp_path / "log") == 2
    for run_id, accuracy in zip(store.runs, (0.25, 0.75)):
        events = EventAccumulator(str(tmp_path / "log" / run_id))
        events.Reload()
        assert set(events.Tags()["scalars"]) == {"accuracy/id_val/laplace", "training/loss"}
        points = events.Scalars("accuracy/id_val/laplace")
        assert [(point.step, point.value) for point in points] == [(10, accuracy)]


def test_a_full_disk_is_an_error_of_the_caller_and_earlier_events_stay(
    store: SweepStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_event_files(store, tmp_path / "log")
    before = sorted((tmp_path / "log").rglob("events*"))

    def full(operation: workspace.Operation, path: Path) -> None:
        if operation == "write":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(workspace, "announce", full)
    with pytest.raises(OSError, match="No space left"):
        write_event_files(store, tmp_path / "log")
    assert sorted((tmp_path / "log").rglob("events*")) == before


def test_without_tensorboard_it_says_how_to_get_it(
    store: SweepStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto.event_pb2", None)
    with pytest.raises(UserError, match=r"pip install 'epigrok\[tensorboard\]'"):
        write_event_files(store, tmp_path / "log")
    assert not (tmp_path / "log").exists()
