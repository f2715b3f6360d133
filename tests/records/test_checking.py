"""Everything that can be wrong with a run directory is named, with its file."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_run import tiny

import epigrok
from epigrok.errors import UserError
from epigrok.evaluation.schema import TRAINING_TABLES
from epigrok.records.checking import Finding, check, check_run, problem_with_finished
from epigrok.records.directory import RunDirectory
from epigrok.runs import TrainOptions


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run that is done, and one that was stopped."""
    root = tmp_path_factory.mktemp("originals")
    epigrok.train(tiny(), root / "done")
    epigrok.train(tiny(), root / "stopped", TrainOptions(stop_at_step=12))
    return {name: root / name for name in ("done", "stopped")}


@pytest.fixture
def copies(originals: dict[str, Path], tmp_path: Path) -> dict[str, RunDirectory]:
    for name, path in originals.items():
        shutil.copytree(path, tmp_path / name)
    return {name: RunDirectory(tmp_path / name) for name in originals}


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def edit_line(path: Path, number: int, change: Callable[[str], str]) -> None:
    lines = path.read_text().splitlines(keepends=True)
    lines[number] = change(lines[number])
    path.write_text("".join(lines))


def with_value(name: str, value: object) -> Callable[[str], str]:
    return lambda line: json.dumps(json.loads(line) | {name: value}) + "\n"


def test_an_intact_run_has_no_findings(copies: dict[str, RunDirectory]) -> None:
    for run in copies.values():
        assert check_run(run) == []
        assert problem_with_finished(run) is None


def test_weights_may_be_dropped_on_purpose_and_not_otherwise(
    copies: dict[str, RunDirectory],
) -> None:
    run = copies["done"]
    shutil.rmtree(run.checkpoints)
    run.checkpoints.mkdir()
    (finding,) = check_run(run)
    assert finding.problem == "no weights are left"
    assert run.keeps_weights
    run.mark_done(keeps_weights=False)
    assert check_run(run) == []
    assert not run.keeps_weights


DAMAGES: dict[str, tuple[str, str, Callable[[Path], object], str]] = {
    "flipped table": ("done", "metrics.jsonl", flip, "digest differs"),
    "cut table": ("done", "final.jsonl", lambda p: os.truncate(p, 500), "bytes, not"),
    "table gone": ("done", "training.jsonl", Path.unlink, "it is missing; it should have 4 rows"),
    "flipped weights": ("done", "checkpoints/step-20/model.safetensors", flip, "model.safetensors"),
    "flipped world": ("done", "world.safetensors", flip, "digest differs"),
    "flipped parquet": ("done", "positions-0.parquet", flip, "digest differs"),
    "empty DONE": (
        "done",
        "DONE",
        lambda p: p.write_text(""),
        "does not match this run's configuration",
    ),
    "config of another version": (
        "done",
        "config.json",
        lambda p: p.write_text(p.read_text().replace('"preset"', '"colour"')),
        "unknown fields colour",
    ),
    "no description": ("stopped", "run.json", lambda p: p.write_text("{}"), "has format None"),
    "no object in a line": (
        "stopped",
        "metrics.jsonl",
        lambda p: edit_line(p, 2, lambda line: "{" + line),
        "its line 3 is not a JSON object",
    ),
    "wrong type": (
        "stopped",
        "metrics.jsonl",
        lambda p: edit_line(p, 1, with_value("nll", "low")),
        "its line 2 has 'low' as nll, which is not of type number",
    ),
    "unknown column": (
        "stopped",
        "training.jsonl",
        lambda p: edit_line(p, 0, with_value("mood", 3)),
        "has a column 'mood' that the table does not know",
    ),
    "a row twice": (
        "stopped",
        "training.jsonl",
        lambda p: edit_line(p, 1, lambda line: p.read_text().splitlines()[0] + "\n"),
        "its line 2 repeats the step of an earlier one",
    ),
    "stopped, cut table": ("stopped", "exact.jsonl", lambda p: os.truncate(p, 9), "bytes, not"),
    "stopped, small file": ("stopped", "positions/step-5.safetensors", flip, "digest differs"),
    "stopped, world": ("stopped", "world.safetensors", Path.unlink, "it is missing"),
    "stopped, resume": ("stopped", "checkpoints/step-12/resume.pt", flip, "resume.pt changed"),
    "a step gone": (
        "done",
        "checkpoints",
        lambda p: shutil.rmtree(p / "step-0"),
        "the weights of step 0 are missing",
    ),
    "status": ("stopped", "status.json", lambda p: p.write_text("[]"), "it is not a JSON object"),
    "provenance": ("stopped", "provenance.json", lambda p: p.write_text("{"), "not a JSON object"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named_with_its_file_and_a_remedy(
    name: str, copies: dict[str, RunDirectory]
) -> None:
    which, file, damage, problem = DAMAGES[name]
    run = copies[which]
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*")}
    damage(run.path / file)
    changed = {path: path.stat().st_mtime_ns for path in run.path.rglob("*")}
    assert before != changed
    found = check_run(run)
    matching = [f for f in found if problem in f.problem]
    assert matching, found
    # A checkpoint is named as a whole.
    assert (run.path / file) in [p for f in matching for p in (f.file, f.file / Path(file).name)]
    assert all(finding.remedy for finding in found)
    # Looking changes nothing.
    assert changed == {path: path.stat().st_mtime_ns for path in run.path.rglob("*")}


@pytest.mark.parametrize("table", TRAINING_TABLES)
def test_every_table_of_the_schema_is_listed_and_checked(
    table: str, copies: dict[str, RunDirectory]
) -> None:
    """A table that somebody adds to the schema is covered without another line."""
    for run in copies.values():
        with run.table(table).open("a") as file:
            file.write("{}\n")
    found = {name: [f.problem for f in check_run(run)] for name, run in copies.items()}
    assert any("rows and" in problem for problem in found["done"])
    assert any("has no step" in problem for problem in found["stopped"])


def test_done_that_was_put_on_an_unfinished_run_is_not_believed(
    copies: dict[str, RunDirectory],
) -> None:
    done, stopped = copies["done"], copies["stopped"]
    shutil.copy(done.path / "DONE", stopped.path)
    remedies = {finding.remedy for finding in check_run(stopped)}
    assert remedies == {
        "restore it from a copy, or remove DONE: training then goes on from a checkpoint"
    }
    with pytest.raises(UserError, match=r"metrics\.jsonl is damaged: it has \d+ rows"):
        epigrok.train(tiny(), stopped.path)
    (stopped.path / "DONE").unlink()
    assert epigrok.train(tiny(), stopped.path).is_done


def test_a_run_that_cannot_go_on_is_told(copies: dict[str, RunDirectory]) -> None:
    run = copies["stopped"]
    for file in run.path.rglob("resume.pt"):
        file.unlink()
    assert Finding(
        run.checkpoints,
        "the run is not finished and has no checkpoint to resume from",
        "restore it from a copy, or train the run again with --start-over",
    ) in check_run(run)


def test_an_evaluation_after_training_is_checked_for_itself(
    copies: dict[str, RunDirectory],
) -> None:
    run = copies["done"]
    run.table("evaluation").write_text('{"step": 20, "split": "id_val"}\n')
    (finding,) = check_run(run)
    assert finding.problem == "its line 1 has no posterior"
    assert "evaluate the run again" in finding.remedy
    assert problem_with_finished(run) is None


def test_only_what_is_asked_for_is_compared(copies: dict[str, RunDirectory]) -> None:
    run = copies["done"]
    flip(run.table("final"))
    assert problem_with_finished(run, "metrics") is None
    assert "final.jsonl is damaged" in str(problem_with_finished(run, "final"))
    assert "final.jsonl is damaged" in str(problem_with_finished(run))


def test_a_pipe_is_no_table(copies: dict[str, RunDirectory]) -> None:
    run = copies["done"]
    run.table("metrics").unlink()
    os.mkfifo(run.table("metrics"))
    assert any("not a regular file" in finding.problem for finding in check_run(run))


def test_every_run_of_a_sweep_is_checked(copies: dict[str, RunDirectory], tmp_path: Path) -> None:
    flip(copies["done"].table("final"))
    found = check(tmp_path)
    assert {path.name: bool(findings) for path, findings in found.items()} == {
        "done": True,
        "stopped": False,
    }
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="there are no runs in"):
        check(tmp_path / "empty")
