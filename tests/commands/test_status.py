"""`epigrok status`: the table of a sweep, for people and for logs."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from epigrok.cli import main
from epigrok.commands.status import status_view
from epigrok.records.directory import RunDirectory
from epigrok.records.status import RunStatus, counts, read_statuses
from epigrok.sweeps.description import Sweep, prepare
from epigrok.sweeps.shipped import find_sweep


def one_run(directory: Path) -> RunDirectory:
    (run,) = prepare(directory, Sweep(name="s", methods=("icl-tiny",))).values()
    return run


def shown(statuses: list[RunStatus], max_rows: int | None) -> str:
    console = Console(width=200, file=io.StringIO())
    console.print(status_view(statuses, max_rows, is_plain=True))
    return console.file.getvalue()  # type: ignore[attr-defined]


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
    assert text.splitlines()[1].split()[:3] == ["run", "state", "lr"]
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


def test_looking_at_a_sweep_needs_no_torch(tmp_path: Path) -> None:
    prepare(tmp_path, find_sweep("smoke"))
    script = f"""import sys
from epigrok.cli import main
assert main(["status", {str(tmp_path)!r}]) == 0
assert "torch" not in sys.modules"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.startswith("8 runs: queued 8")
