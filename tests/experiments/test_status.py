"""Where runs stand, read from files that may be half written, stale or hostile."""

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from epigrok.cli import main
from epigrok.commands.status import status_view
from epigrok.experiments.builtin_sweeps import find_sweep
from epigrok.experiments.lease import LEASE, hold_lease
from epigrok.experiments.run_files import RunDirectory
from epigrok.experiments.status import RunStatus, counts, read_status, read_statuses, varying_fields
from epigrok.experiments.sweep import Sweep, prepare


def one_run(directory: Path) -> RunDirectory:
    sweep = Sweep(name="s", methods=("icl-tiny",), overrides={"num_steps": 2500})
    (run,) = prepare(directory, sweep).values()
    return run


def shown(statuses: list[RunStatus], max_rows: int | None) -> str:
    console = Console(width=200, file=io.StringIO())
    console.print(status_view(statuses, max_rows, is_plain=True))
    return console.file.getvalue()  # type: ignore[attr-defined]


def state_of(run: RunDirectory) -> str:
    return read_status(run, time.time()).state


def test_a_run_passes_through_every_state(tmp_path: Path) -> None:
    run = one_run(tmp_path)
    assert state_of(run) == "queued"
    with hold_lease(run.path):
        assert state_of(run) == "running"
        run.write_status(state="running", step=10, steps_per_second=5.0, updated=time.time() - 7)
        status = read_status(run, time.time())
        assert status.state == "running"
        assert status.seconds_left == (2500 - 10) / 5.0
        assert status.age_seconds == pytest.approx(7, abs=5)
    assert state_of(run) == "lost"
    assert read_status(run, time.time()).seconds_left is None
    run.write_status(state="stopped", step=20)
    assert state_of(run) == "stopped"
    run.write_status(state="failed", step=20, reason="the loss is not finite")
    assert read_status(run, time.time()).reason == "the loss is not finite"
    with hold_lease(run.path):
        assert state_of(run) == "running"
        assert read_status(run, time.time()).reason == ""
    run.mark_done()
    assert state_of(run) == "done"
    assert read_status(run, time.time()).step == 2500


def test_a_run_elsewhere_whose_heart_stopped_is_lost(tmp_path: Path) -> None:
    run = one_run(tmp_path)
    run.write_status(state="running", step=10)
    holder = {"token": "t", "host": "h", "machine": "m", "pid": 1, "process_start": ""}
    holder |= {"job": "", "job_restarts": 0, "seconds": 60}
    (run.path / LEASE).write_text(json.dumps(holder))
    assert state_of(run) == "running"
    os.utime(run.path / LEASE, (time.time() - 61,) * 2)
    assert state_of(run) == "lost"


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"state": 3}'])
def test_a_status_that_makes_no_sense_does_not_stop_the_table(content: str, tmp_path: Path) -> None:
    run = one_run(tmp_path)
    (run.path / "status.json").write_text(content)
    assert read_statuses(tmp_path)[0].state in ("queued", "lost")


def test_a_broken_configuration_is_a_failure_with_a_reason(tmp_path: Path) -> None:
    run = one_run(tmp_path)
    (run.path / "config.json").write_text("{")
    (status,) = read_statuses(tmp_path)
    assert status.state == "failed"
    assert "not valid JSON" in status.reason


def test_the_fields_that_vary_are_told_without_what_a_preset_implies(tmp_path: Path) -> None:
    prepare(tmp_path, find_sweep("smoke"))
    configs = [status.config for status in read_statuses(tmp_path)]
    assert varying_fields(configs) == ["preset", "run_seed"]


def test_the_table_shows_a_sweep_and_a_single_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = list(prepare(tmp_path, find_sweep("smoke")).values())
    scores = {"accuracy_final": {"id_val": 0.75}, "epistemic_final": {"id_val": 0.125}}
    runs[0].write_status(state="failed", step=30, reason="out of memory", **scores)
    runs[0].log.write_text("…")
    runs[1].mark_done()
    assert main(["status", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("8 runs: failed 1  queued 6  done 1\n")
    line = next(line for line in text.splitlines() if line.startswith(runs[0].path.name))
    assert line.split()[:7] == [
        runs[0].path.name,
        "failed",
        "icl-tiny",
        "0",
        "30/60",
        "0.750",
        "0.125",
    ]
    assert f"{runs[0].path.name} failed: out of memory; see {runs[0].log}" in text
    assert main(["status", str(runs[0].path)]) == 0
    assert capsys.readouterr().out.startswith("1 run: failed 1")
    assert main(["status", str(tmp_path / "nowhere")]) == 2
    (tmp_path / "empty").mkdir()
    assert main(["status", str(tmp_path / "empty")]) == 2
    assert "no runs in" in capsys.readouterr().err


def test_lists_that_vary_have_no_column(tmp_path: Path) -> None:
    axes = {"evaluation.posteriors": (["point"], ["point", "laplace"]), "optim.lr": (0.1, 0.2)}
    prepare(tmp_path, Sweep(name="s", methods=("icl-tiny",), axes=axes))
    text = shown(read_statuses(tmp_path), None)
    assert "optim.lr" in text
    assert "posteriors" not in text


def test_watching_ends_when_everything_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one_run(tmp_path).mark_done()
    assert main(["status", str(tmp_path), "--watch"]) == 0
    assert "done 1" in capsys.readouterr().out


def test_labels_have_no_power_over_the_terminal(tmp_path: Path) -> None:
    run = one_run(tmp_path)
    values = run.config_json() | {"preset": "[red]x[/red]\x1b[2J<script>"}
    (run.path / "config.json").write_text(json.dumps(values))
    run.write_status(state="failed", reason="\x1b]0;title\x07[bold]no[/bold]\n../../x")
    text = shown(read_statuses(tmp_path), None)
    assert "[red]x[/red] [2J<script>" in text
    assert "[bold]no[/bold]" in text
    assert "\x1b" not in text


def test_when_not_all_runs_fit_those_that_need_somebody_come_first(tmp_path: Path) -> None:
    runs = list(prepare(tmp_path, find_sweep("smoke")).values())
    runs[5].write_status(state="failed", reason="why")
    statuses = read_statuses(tmp_path)
    assert counts(statuses) == {"failed": 1, "queued": 7}
    text = shown(statuses, 3)
    assert runs[5].path.name in text
    assert "… and 5 more" in text


def test_looking_at_a_large_sweep_needs_no_torch(tmp_path: Path) -> None:
    prepare(tmp_path, find_sweep("paper"))
    script = f"""import sys
from epigrok.cli import main
assert main(["status", {str(tmp_path)!r}]) == 0
assert "torch" not in sys.modules"""
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stdout.startswith("240 runs: queued 240")
