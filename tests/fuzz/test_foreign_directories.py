"""Whatever a foreign run directory holds: success or one sentence, nothing written outside it."""

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_runs import make_sweep

from epigrok.cli import main

SECONDS = 30
"""Within which a command must have ended."""
FILES = ("config.json", "run.json", "status.json", "provenance.json", "lease.json", "DONE")
TABLES = ("metrics.jsonl", "final.jsonl", "timings.jsonl", "training.jsonl", "calibration.jsonl")
ODD = st.sampled_from(
    ["", "[/red]", "\x1b[31m", "../../x", "a" * 300, 1e300, -1, 10**30, True, None, [], {}, [[]]]
)
VALUES = st.recursive(
    ODD | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)
COMMANDS = (
    ["status", "{run}"],
    ["check", "{run}"],
    ["export", "{run}", "{out}/x.parquet"],
    ["evaluate", "{run}", "--times"],
    ["separation", "{run}"],
    ["tensorboard", "{run}", "--logdir", "{out}/tb"],
    ["status", "{sweep}"],
)


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    def give_up(number: int, frame: object) -> None:
        raise TimeoutError(f"no end after {seconds} s")

    previous = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (run, _) = make_sweep(tmp_path_factory.mktemp("fuzz") / "sweep", [500, None], [600, None])
    return run.path.parent


@st.composite
def damages(draw: st.DrawFn) -> tuple[str, str, Any]:
    """A file, and what becomes of it."""
    name = draw(st.sampled_from((*FILES, *TABLES)))
    kind = draw(st.sampled_from(("content", "value", "pipe", "folder", "link", "gone", "bytes")))
    if kind == "value":
        return name, kind, (draw(st.integers(0, 9)), draw(VALUES))
    if kind == "bytes":
        return name, kind, draw(st.binary(max_size=60))
    return name, kind, draw(VALUES)


def damage(path: Path, kind: str, value: Any) -> None:
    lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
    path.unlink(missing_ok=True)
    if kind == "content":
        path.write_text(json.dumps(value) + "\n")
    elif kind == "bytes":
        path.write_bytes(value)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to("/etc/passwd")
    elif kind == "value":
        number, new = value
        text = "\n".join(lines) if path.suffix != ".jsonl" else (lines or ["{}"])[0]
        try:
            row = dict(json.loads(text))
        except (ValueError, TypeError):
            row = {}
        names = sorted(row) or ["step"]
        row[names[number % len(names)]] = new
        path.write_text("\n".join([json.dumps(row), *lines[1:]][: len(lines) or 1]) + "\n")


def files_below(path: Path) -> set[Path]:
    return {found for found in path.rglob("*") if found.name != "x.parquet"}


def assert_one_sentence_or_success(
    original: Path, changes: list[tuple[str, str, Any]], command: list[str], capsys: Any
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        sweep, out = Path(scratch) / "place" / "sweep", Path(scratch) / "out"
        shutil.copytree(original, sweep)
        out.mkdir()
        run = min(path for path in sweep.iterdir() if path.is_dir())
        for name, kind, value in changes:
            if not (run / name).is_dir():
                damage(run / name, kind, value)
        before = {*Path(scratch).iterdir(), *sweep.parent.iterdir()}
        arguments = [a.format(run=run, sweep=sweep, out=out) for a in command]
        with at_most(SECONDS):
            exit_code = main(arguments)
        told = capsys.readouterr()
        assert exit_code in (0, 1, 2), told.err
        assert "\x1b" not in told.out + told.err
        if exit_code == 2:
            assert len(told.err.splitlines()) >= 1
        after = {*Path(scratch).iterdir(), *sweep.parent.iterdir()}
        assert before == after


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(damages(), min_size=1, max_size=3), command=st.sampled_from(COMMANDS))
def test_a_few_foreign_directories(
    original: Path, capsys: Any, changes: list[tuple[str, str, Any]], command: list[str]
) -> None:
    assert_one_sentence_or_success(original, changes, command, capsys)


@pytest.mark.fuzz
@pytest.mark.parametrize("shard", range(8))
def test_thousands_of_foreign_directories(shard: int, original: Path, capsys: Any) -> None:
    @settings(max_examples=260, derandomize=False, database=None)
    @given(changes=st.lists(damages(), min_size=1, max_size=3), command=st.sampled_from(COMMANDS))
    def check(changes: list[tuple[str, str, Any]], command: list[str]) -> None:
        assert_one_sentence_or_success(original, changes, command, capsys)

    from hypothesis import seed

    seed(shard)(check)()
