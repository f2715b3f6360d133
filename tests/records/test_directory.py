"""A run directory: what its files tell, and what is said where they are missing or damaged."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from damaged_files import DEEP
from safetensors.torch import save_file

from epigrok.config import preset
from epigrok.errors import UserError
from epigrok.records.directory import RunDirectory, run_directories
from epigrok.sweeps.description import Sweep, prepare


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    (run,) = prepare(tmp_path, Sweep(name="s", methods=("classic",))).values()
    return run


def change_json(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_prepared_run_has_its_configuration_and_nothing_else(run: RunDirectory) -> None:
    assert run.config() == preset("classic")
    assert (run.status(), run.provenance(), run.rows("metrics")) == ({}, {}, [])
    assert not run.is_done
    run.mark_done()
    assert run.is_done


def test_rows_are_read_as_they_are_written_and_a_line_cut_short_is_left_out(
    run: RunDirectory,
) -> None:
    run.table("context_noise").write_text('{"step": 1, "accuracy": 0.5}\n{"step": 2, "acc')
    assert run.rows("context_noise") == [{"step": 1, "accuracy": 0.5}]
    assert run.rows("final") == []


def test_an_older_directory_is_refused_with_what_to_do(run: RunDirectory) -> None:
    (run.path / "run.json").unlink()
    for read in (run.description, run.config):
        with pytest.raises(UserError, match=r"older version of epigrok: it has no run\.json; tr"):
            read()


def test_a_run_that_a_killed_driver_was_preparing_is_no_run(tmp_path: Path) -> None:
    (run,) = prepare(tmp_path, Sweep(name="s", methods=("classic",))).values()
    shutil.copytree(run.path, tmp_path / f".{run.path.name}.x1y2")
    assert run_directories(tmp_path) == [run]


@pytest.mark.parametrize("content", ["{", "", "\ud800"])
def test_a_file_that_is_no_json_is_named(content: str, run: RunDirectory) -> None:
    (run.path / "run.json").write_bytes(content.encode(errors="surrogatepass"))
    with pytest.raises(UserError, match=r"run\.json is not valid JSON"):
        run.description()


def test_a_configuration_that_is_no_object_is_refused(run: RunDirectory) -> None:
    (run.path / "config.json").write_text("[]")
    with pytest.raises(UserError, match=r"config\.json is not the configuration of a run"):
        run.config_json()


def test_a_directory_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is not a run directory: it has no run\.json"):
        RunDirectory(tmp_path).config()
    with pytest.raises(UserError, match="is not a run directory: there is no such directory"):
        RunDirectory(tmp_path / "nowhere").config()


def test_a_field_of_another_version_is_named_with_its_run(run: RunDirectory) -> None:
    change_json(run.path / "config.json", colour="red")
    with pytest.raises(UserError, match=rf"{run.path.name}.* unknown fields colour"):
        run.config()


def test_a_run_of_a_plugin_that_is_not_loaded_says_which(run: RunDirectory) -> None:
    change_json(run.path / "config.json", task={"kind": "OwnTask"})
    plugin = {"file": "own_task.py", "digest": "", "provides": ["task OwnTask"]}
    change_json(run.path / "run.json", plugins=[plugin])
    with pytest.raises(
        UserError, match=r"needs the plugin own_task\.py \(task OwnTask\): pass --plugin"
    ):
        run.config()
    # Its tables can be read all the same.
    assert run.description().num_classes == 59


@pytest.mark.parametrize("content", ["", "[]", "null", "{"])
def test_a_damaged_status_or_provenance_is_like_none(content: str, run: RunDirectory) -> None:
    for file in ("status.json", "provenance.json"):
        (run.path / file).write_text(content)
    assert (run.status(), run.provenance()) == ({}, {})


def test_a_damaged_world_is_named(run: RunDirectory) -> None:
    for content in (None, b""):
        if content is not None:
            (run.path / "world.safetensors").write_bytes(content)
        with pytest.raises(UserError, match=r"cannot read .*world\.safetensors"):
            run.world()


def test_the_world_of_a_finished_run_is_compared_with_its_digest(run: RunDirectory) -> None:
    world = run.path / "world.safetensors"
    save_file({"tasks": torch.arange(3)}, world)
    run.mark_done()
    assert run.world()["tasks"].tolist() == [0, 1, 2]
    save_file({"tasks": torch.arange(1, 4)}, world)
    with pytest.raises(UserError, match=r"world\.safetensors is damaged: it changed since the run"):
        run.world()


def test_a_file_is_no_directory_of_runs(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    file.touch()
    with pytest.raises(UserError, match=r"metrics\.jsonl is a file, not a directory"):
        run_directories(file)


def test_a_sweep_is_listed_by_name_and_a_run_is_itself(tmp_path: Path) -> None:
    runs = prepare(tmp_path, Sweep(name="s", methods=("classic",), seeds=(0, 1, 2)))
    (tmp_path / "notes").mkdir()
    assert [run.path.name for run in run_directories(tmp_path)] == sorted(runs)
    for run in runs.values():
        assert run_directories(run.path) == [run]
    assert run_directories(tmp_path / "notes") == []
    with pytest.raises(UserError, match="there is no directory"):
        run_directories(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ('{"step": []}', r"line 2 has \[\] as step, which is not of type integer"),
        ('{"accuracy": 1}', "line 2 has no step"),
        ('{"step": null}', "line 2 has no step"),
        (DEEP, "line 2 is not a JSON object"),
    ],
)
def test_a_damaged_row_is_told_with_its_line(row: str, problem: str, run: RunDirectory) -> None:
    run.table("metrics").write_text(f'{{"step": 0}}\n{row}\n')
    with pytest.raises(UserError, match=rf"metrics\.jsonl is damaged: its {problem}"):
        run.rows("metrics", ("step",))
