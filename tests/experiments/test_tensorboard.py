"""Curves for TensorBoard."""

from pathlib import Path

import pytest

from epigrok.cli import main
from epigrok.errors import UserError
from epigrok.experiments.sweep import Sweep, prepare
from epigrok.experiments.tensorboard import curves, write_event_files
from epigrok.files import append_json_lines


def written_run(directory: Path):
    (run,) = prepare(directory, Sweep(name="s", methods=("classic",))).values()
    keys = {"step": 10, "split": "id_val", "posterior": "laplace"}
    rows = [{**keys, "num_samples": n, "num_rows": 5, "accuracy": n / 10} for n in (2, 8)]
    append_json_lines(run.table("metrics"), rows)
    append_json_lines(run.table("training"), [{"step": 10, "loss": 0.5}])
    return run


def test_every_metric_of_every_split_and_posterior_is_a_curve(tmp_path: Path) -> None:
    run = written_run(tmp_path)
    assert list(curves(run)) == [("accuracy/id_val/laplace", 0.2, 10), ("training/loss", 0.5, 10)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_event_files_hold_the_curves_once(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = written_run(tmp_path / "sweep")
    for _ in range(2):
        assert (
            main(["tensorboard", str(tmp_path / "sweep"), "--logdir", str(tmp_path / "log")]) == 0
        )
    events = EventAccumulator(str(tmp_path / "log" / run.path.name))
    events.Reload()
    assert set(events.Tags()["scalars"]) == {"accuracy/id_val/laplace", "training/loss"}
    assert [(point.step, point.value) for point in events.Scalars("training/loss")] == [(10, 0.5)]


def test_without_runs_or_tensorboard_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
    with pytest.raises(UserError, match=r"pip install 'epigrok\[tensorboard\]'"):
        write_event_files(tmp_path, tmp_path / "log")
