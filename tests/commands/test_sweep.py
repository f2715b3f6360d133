"""`epigrok sweep`: what it would do, and what it refuses. The engines have tests of their own."""

import json
from pathlib import Path

import pytest
from table_files import write_table

from epigrok.cli import main
from epigrok.commands.arguments import parse
from epigrok.commands.sweep import SweepArguments
from epigrok.errors import UserError
from epigrok.sweeps.description import Sweep, prepare, sweep_to_json
from epigrok.sweeps.shipped import find_sweep


def test_a_dry_run_lists_axes_states_and_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.json"
    axes, where = {"task.train_fraction": [0.3, 0.5]}, {"task.train_fraction": 0.5}
    long = [{"where": where, "set": {"num_steps": 200_000}}]
    overrides = {"num_steps": 100_000}
    content = {"methods": ["classic"], "axes": axes, "conditions": long, "overrides": overrides}
    file.write_text(json.dumps(content))
    assert main(["sweep", str(file), "--dry-run", "--steps-per-second", "20"]) == 0
    text = capsys.readouterr().out
    assert "sweep mine: 2 runs" in text
    assert "task.train_fraction  0.3, 0.5" in text
    assert "num_steps = 200000 where task.train_fraction = 0.5" in text
    assert "steps left: 300,000" in text
    # 300,000 steps at 20 a second.
    assert "device-hours: 4.2" in text
    file.unlink()
    assert main(["sweep", "smoke", "--out", str(tmp_path), "--dry-run"]) == 0
    assert "unknown for 8 runs" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_pieces_part_the_chosen_runs(capsys: pytest.CaptureFixture[str]) -> None:
    def names(*options: str) -> list[str]:
        assert main(["sweep", "smoke", "--dry-run", *options]) == 0
        listing, _, _ = capsys.readouterr().out.partition("\n\n")
        return [line.split()[0] for line in listing.splitlines()]

    chosen = names("--where", "preset=classic,icl-tiny", "run_seed=0,1")
    assert len(chosen) == 4
    parts = [names("--where", "preset=classic,icl-tiny", "--piece", f"{k}/3") for k in (1, 2, 3)]
    assert sorted(name for part in parts for name in part) == sorted(chosen)
    assert parts[0] == [chosen[0], chosen[3]]


def test_speeds_come_from_runs_of_the_same_shape(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = list(prepare(tmp_path, find_sweep("smoke")).values())
    rows = [{"step": step, "seconds_training": 9.0, "seconds_evaluating": 1.0} for step in (0, 60)]
    write_table(runs[0], "timings", rows)
    runs[0].mark_done()
    assert main(["sweep", "smoke", "--out", str(tmp_path), "--dry-run"]) == 0
    text = capsys.readouterr().out
    assert "done 1; queued 7" in text
    # The other seed has the same shape: 60 steps at 3 per second; six other runs are unknown.
    assert "unknown for 6 runs" in text
    assert "device-minutes: 0.33 for the rest" in text


def test_a_sweep_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "papre", "--dry-run"]) == 2
    assert "no sweep named 'papre' and no such file" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_to_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "smoke", "--out", "/proc/sweep"]) == 2
    assert "cannot write to /proc/sweep" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["smoke"], "missing --out DIR, the directory of the sweep"),
        (["smoke", "--out", "x", "--slots", "gpu"], "'gpu' is not a slot"),
        (["smoke", "--out", "x", "--piece", "3/2"], "'3/2' is no piece; write I/N"),
        (["smoke", "--out", "x", "--where", "preset=icl-huge"], "no run has preset = icl-huge"),
        (["broken.json", "--out", "x"], "broken.json is not valid JSON"),
        (["folder", "--dry-run"], "folder is a directory; name a shipped sweep, or a TOML or JSON"),
        (["unknown.json", "--out", "x"], "no preset named 'icl-huge'"),
    ],
)
def test_mistakes_are_one_sentence_and_nothing_is_made(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("broken.json").write_text("{")
    Path("unknown.json").write_text('{"methods": ["icl-huge"]}')
    assert main(["sweep", *arguments]) == 2
    text = capsys.readouterr().err
    assert message in text
    assert text.count("\n") == 1
    assert not Path("x").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [(["0"], "--time-limit must be positive, got 0"), (["9", "--on", "ray"], "is for --on local")],
)
def test_limits_of_time_that_mean_nothing_are_refused(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["sweep", "smoke", "--dry-run", "--time-limit", *options])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("value", ["nan", "inf", "-1"])
@pytest.mark.parametrize("flag", ["--stagger", "--mem-gb", "--ray.gpus-per-run"])
def test_amounts_that_mean_nothing_are_refused(flag: str, value: str) -> None:
    # A pause of nan seconds never ends.
    with pytest.raises((SystemExit, UserError)):
        parse(SweepArguments, "sweep", ["smoke", flag, value])


def test_a_directory_that_holds_another_run_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = Sweep(name="s", methods=("classic",), seeds=(0, 1))
    first, second = prepare(tmp_path / "out", sweep).values()
    (first.path / "config.json").write_bytes((second.path / "config.json").read_bytes())
    second.mark_done()
    file = tmp_path / "sweep.json"
    file.write_text(json.dumps(sweep_to_json(sweep)))
    assert main(["sweep", str(file), "--out", str(tmp_path / "out"), "--slots", "cpu"]) == 1
    captured = capsys.readouterr()
    assert "sweep s: 2 runs, 1 done" in captured.out
    assert f"{first.path.name}  its config.json was changed: it now describes" in captured.err
    assert second.path.name in captured.err


@pytest.mark.parametrize("engine", ["slurm", "ray"])
def test_an_engine_that_is_not_installed_is_named_before_anything_is_made(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epigrok.extras.find_spec", lambda name: None)
    assert main(["sweep", "smoke", "--out", str(tmp_path / "out"), "--on", engine]) == 2
    assert f"`pip install 'epigrok[{engine}]'` adds them" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
