"""`epigrok tensorboard`."""

from pathlib import Path

import pytest
from table_files import write_table

from epigrok.cli import main
from epigrok.sweeps.description import Sweep, prepare


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_run_gets_a_folder_of_events(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = prepare(tmp_path / "sweep", Sweep(name="s", methods=("classic",), seeds=(0, 1)))
    for run in runs.values():
        write_table(run, "training", [{"step": 10, "loss": 0.5}])
    log = tmp_path / "log"
    assert main(["tensorboard", str(tmp_path / "sweep"), "--logdir", str(log)]) == 0
    assert capsys.readouterr().out.startswith(f"2 runs in {log}; look at them with: tensorboard")
    assert {folder.name for folder in log.iterdir()} == set(runs)
    assert all(list(folder.glob("events.out.tfevents.*")) for folder in log.iterdir())
