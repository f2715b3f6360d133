"""Tables that know how far they were written."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from epigrok.errors import UserError
from epigrok.evaluation.schema import TRAINING_TABLES
from epigrok.records.directory import RunDirectory
from epigrok.records.run_tables import RunTables, require_nothing_to_lose
from epigrok.workspace import Workspace

Opened = Callable[[dict[str, Any]], RunTables]


@pytest.fixture
def opened(run: RunDirectory, workspace: Workspace) -> Iterator[Opened]:
    """Opens the tables of the run, and closes them after the test."""
    with ExitStack() as stack:
        yield lambda extents: stack.enter_context(closing(RunTables(run, workspace, extents)))


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    (tmp_path / "world.safetensors").write_bytes(b"a world")
    return RunDirectory(tmp_path)


def test_what_came_after_a_checkpoint_is_cut_off(run: RunDirectory, opened: Opened) -> None:
    tables = opened({})
    tables.append("metrics", [{"step": 0}, {"step": 5}])
    tables.write_positions(5, b"five")
    extents = tables.extents()
    tables.append("metrics", [{"step": 10}])
    tables.append("final", [{"step": 10}])
    tables.write_positions(10, b"ten")
    run.table("evaluation").write_text('{"step": 10}\n')
    with run.table("metrics").open("a") as file:
        file.write('{"step": 1')
    again = opened(extents)
    assert again.extents() == extents
    assert run.rows("metrics") == [{"step": 0}, {"step": 5}]
    assert run.rows("final") == []
    assert run.rows("evaluation") == [{"step": 10}]
    assert [path.name for path in (run.path / "positions").iterdir()] == ["step-5.safetensors"]
    assert {name for name in TRAINING_TABLES if run.table(name).exists()} == set(TRAINING_TABLES)


def test_a_holder_that_was_given_up_writes_into_files_without_a_name(
    run: RunDirectory, opened: Opened
) -> None:
    first = opened({})
    first.append("metrics", [{"step": 0}])
    second = opened(first.extents())
    first.append("metrics", [{"step": 1, "by": "first"}])
    second.append("metrics", [{"step": 1, "by": "second"}])
    assert run.rows("metrics") == [{"step": 0}, {"step": 1, "by": "second"}]


@pytest.mark.parametrize("file", ["metrics.jsonl", "positions/step-0.safetensors"])
def test_a_file_that_changed_is_named_and_nothing_is_cut(
    file: str, run: RunDirectory, opened: Opened
) -> None:
    tables = opened({})
    tables.append("metrics", [{"step": 0, "nll": 1.5}])
    tables.write_positions(0, b"1.5")
    extents = tables.extents()
    tables.append("metrics", [{"step": 1, "nll": 1.0}])
    changed = (run.path / file).read_bytes().replace(b"1.5", b"2.5")
    (run.path / file).write_bytes(changed)
    with pytest.raises(UserError, match=rf"{file} changed after it was written; .* --start-over"):
        opened(extents)
    assert (run.path / file).read_bytes() == changed
    assert len(run.rows("metrics")) == 2


def test_a_run_starts_over_only_where_nothing_is_lost(run: RunDirectory, opened: Opened) -> None:
    tables = opened({})
    require_nothing_to_lose(run)
    # Killed before its first checkpoint: step 0 is soon repeated.
    tables.append("metrics", [{"step": 0}])
    require_nothing_to_lose(run)
    tables.append("training", [{"step": 7}])
    with pytest.raises(UserError, match="2 rows up to step 7, but no checkpoint to resume from"):
        require_nothing_to_lose(run)


@pytest.mark.parametrize("extents", [{"metrics": []}, {"metrics": {}}, {"positions": 1}])
def test_extents_that_make_no_sense_are_refused(extents: dict[str, object], opened: Opened) -> None:
    with pytest.raises(UserError, match="changed after it was written"):
        opened(extents)


@pytest.mark.parametrize(
    "file", ["metrics.jsonl", "positions/step-0.safetensors", "world.safetensors"]
)
@pytest.mark.parametrize("change", ["remove", "cut", "add"])
def test_what_somebody_did_to_a_run_at_work_is_noticed_before_it_is_done(
    change: str, file: str, run: RunDirectory, opened: Opened
) -> None:
    tables = opened({})
    tables.append("metrics", [{"step": 0, "nll": 1.5}])
    tables.write_positions(0, b"1.5")
    tables.require_unchanged()
    path = run.path / file
    if change == "remove":
        path.unlink()
    elif change == "cut":
        os.truncate(path, 2)
    else:
        with path.open("a") as opened_again:
            opened_again.write("{}\n")
    with pytest.raises(UserError, match=rf"{file} changed after it was written; .* --start-over"):
        tables.require_unchanged()
