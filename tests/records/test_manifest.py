"""What DONE says of a finished run, and which DONE is believed."""

import json
from pathlib import Path

import pytest
from table_files import append_rows

from epigrok.files import digest_of
from epigrok.records.directory import RunDirectory
from epigrok.records.manifest import DONE, read_manifest
from epigrok.sweeps.description import Sweep, prepare


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    sweep = Sweep(name="s", methods=("classic",), overrides={"num_steps": 40})
    (run,) = prepare(tmp_path, sweep).values()
    append_rows(run.table("metrics"), [{"step": 0}, {"step": 40}])
    (run.path / "world.safetensors").write_bytes(b"a world")
    return run


def test_done_lists_every_table_and_file_as_they_are(run: RunDirectory) -> None:
    append_rows(run.table("evaluation"), [{"step": 40}])
    run.mark_done()
    found = read_manifest(run.path)
    assert found is not None
    metrics = run.table("metrics")
    size, digest = metrics.stat().st_size, digest_of(metrics)
    # Evaluations after training are nothing that training must have left.
    assert found["tables"] == {"metrics": {"rows": 2, "bytes": size, "digest": digest}}
    assert found["step"] == 40
    files = ("config.json", "run.json", "world.safetensors")
    assert found["files"] == {name: digest_of(run.path / name) for name in files}


def test_a_done_of_another_run_or_of_none_is_not_believed(run: RunDirectory) -> None:
    assert read_manifest(run.path) is None
    run.mark_done()
    done = run.path / DONE
    values = json.loads(done.read_text())
    wrong: list[object] = ["", [], {}, values | {"files": {}}, values | {"step": "40"}]
    for other in [*wrong, values | {"files": {"config.json": "0"}}, values | {"tables": None}]:
        done.write_text(other if isinstance(other, str) else json.dumps(other))
        assert not run.is_done, other
    done.write_text(json.dumps(values))
    assert run.is_done
    config = run.path / "config.json"
    config.write_text(config.read_text().replace("40", "41"))
    assert not run.is_done
