"""Configuration, provenance, and the commands that repeat it."""

import json
import re
import subprocess
import sys
from pathlib import Path

from made_runs import make_sweep
from report_pages import Document

from epigrok.records.directory import RunDirectory
from epigrok.report import write_report
from epigrok.sweeps.description import Sweep, prepare, recorded_sweeps
from epigrok.sweeps.description_files import read_sweep


def test_configuration_tells_what_varies_from_what_stays(tmp_path: Path) -> None:
    prepare(tmp_path, Sweep(name="s", methods=("classic", "classic-ivon"), seeds=(0, 1)))
    text = Document(write_report(tmp_path)).text
    varying, by_preset, common = re.findall(r"field (.*?)(?=field |Provenance)", text)
    assert "preset classic, classic-ivon run_seed 0, 1" in varying
    assert "optim.kind AdamWConfig IVONConfig" in by_preset
    assert "task.modulus 59" in common
    assert "optim.kind" not in common


def test_a_single_run_is_repeated_from_its_own_files(tmp_path: Path) -> None:
    overrides = {"num_steps": 2, "schedule.warmup_steps": 1, "evaluation.posteriors": ["point"]}
    sweep = Sweep(name="one", methods=("classic",), overrides=overrides)
    (run,) = prepare(tmp_path, sweep).values()
    text = Document(write_report(run.path)).text
    (recipe,) = re.findall(r"mkdir again cp .* epigrok report again", text)
    commands = re.sub(r" (?=cp |epigrok )", "\n", recipe)
    assert commands.count("\n") == 3
    script = commands.replace("epigrok ", f"{sys.executable} -m epigrok ")
    subprocess.run(["sh", "-ec", script], cwd=tmp_path, check=True, capture_output=True)
    again = RunDirectory(tmp_path / "again")
    assert again.is_done
    assert again.config() == run.config()


def test_repeating_runs_of_a_plugin_names_it(tmp_path: Path) -> None:
    (run,) = prepare(tmp_path, Sweep(name="one", methods=("classic",))).values()
    description = json.loads((run.path / "run.json").read_text())
    description["plugins"] = [{"file": "my own.py", "digest": "0" * 32, "provides": ["task Own"]}]
    (run.path / "run.json").write_text(json.dumps(description))
    text = Document(write_report(run.path)).text
    assert "epigrok --plugin 'my own.py' run again" in text


def test_provenance_counts_runs_that_differ(tmp_path: Path) -> None:
    runs = make_sweep(tmp_path, [None] * 3, [None] * 3)
    for run, commit, device in zip(runs, ("abc", "abc", "def"), ("cpu", "cpu", "H200")):
        process = {"started": "2026-11-15T12:24:02+00:00", "device": device, "versions": {"x": "1"}}
        record = {"commit": commit, "has_uncommitted_changes": device != "cpu"}
        path = run.path / "provenance.json"
        path.write_text(json.dumps({**record, "processes": [process]}))
    text = Document(write_report(tmp_path)).text
    assert "commit abc (2 runs); def with uncommitted changes (1 run)" in text
    assert "device cpu (2 runs); H200 (1 run)" in text
    assert "started 2026-11-15 12:24 UTC last update 2027-01-15 08:00 UTC" in text


def test_a_sweep_of_ones_own_is_repeated_from_a_file_beside_the_page(tmp_path: Path) -> None:
    directory = tmp_path / "mine"
    make_sweep(directory, [None], [None])
    file = write_report(directory)
    (command,) = re.findall(r"epigrok sweep (\S+) --out mine", Document(file).text)
    assert read_sweep(file.parent / command) == recorded_sweeps(directory)[0]


def test_a_shipped_sweep_is_repeated_by_its_name(tmp_path: Path) -> None:
    from epigrok.sweeps.shipped import smoke

    prepare(tmp_path / "runs", smoke())
    file = write_report(tmp_path / "runs")
    assert "epigrok sweep smoke --out runs epigrok report runs" in Document(file).text
