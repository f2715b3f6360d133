"""`epigrok train`: what it prints, and how to go on."""

import re
import shlex
from pathlib import Path

import pytest

from epigrok.cli import main
from epigrok.commands.train import MOST_USED
from epigrok.config import preset, presets

FEW = ["--evaluation.num-samples", "2", "--evaluation.num-final-samples", "2"]
FEW += ["--evaluation.num-sampled-sequences", "32"]
"""Samples and sequences, so that evaluating takes no time."""


def test_a_changed_recipe_is_told_so_in_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    small = ["--num-steps", "3", "--schedule.warmup-steps", "2", "--batch-size", "64", *FEW]
    assert main(["train", "classic", "--out", str(tmp_path / "run"), *small]) == 0
    text = capsys.readouterr().out
    assert text.count("note:") == 1
    assert "batch size 64 instead of 512, warm-up 2 instead of 10" in text
    scores = [line.split("accuracy")[0].split() for line in text.splitlines() if "  nll " in line]
    tracked = preset("classic").evaluation.posteriors
    assert sorted(scores) == sorted([s, p] for s in ("id_train", "id_val") for p in tracked)
    assert main(["train", "classic", "--out", str(tmp_path / "run"), *small]) == 0
    assert "is finished; nothing to do" in capsys.readouterr().out


def test_help_needs_no_preset(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_request:
        main(["train", "--help"])
    assert exit_request.value.code == 0
    text = capsys.readouterr().out
    assert all(name in text for name in presets())


@pytest.mark.parametrize("name", presets())
def test_the_help_names_ten_flags_first_and_all_in_groups(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit):
        main(["train", name, "--help"])
    # The frames around groups depend on the terminal.
    text = re.sub("[│─╭╮╰╯]", " ", capsys.readouterr().out)
    first, *groups = re.split(r"^ *((?:\w+ )?options) *$", text, flags=re.MULTILINE)
    flags = re.findall(r"^  (--\S+) \S+", first, re.MULTILINE)
    assert len(flags) == len(MOST_USED) == 10
    listed = set(re.findall(r"^ +(--\S+)", "".join(groups), re.MULTILINE))
    assert set(flags) <= listed
    sections = ["task", "model", "optim", "schedule", "evaluation", "execution"]
    assert groups[::2] == ["options", *(f"{section} options" for section in sections)]


@pytest.fixture
def no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process: other tests load plugins into this one."""
    monkeypatch.setattr("epigrok.commands.train.loaded_plugins", list)


@pytest.mark.usefixtures("no_plugins")
@pytest.mark.parametrize("flag", [["--stop-at-step", "2"], ["--stop-at-step=2"]])
def test_a_pause_is_not_part_of_how_to_go_on(
    flag: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shape = ["--num-steps", "4", "--schedule.warmup-steps", "1", *FEW]
    shape += ["--out", str(tmp_path / "run")]
    for _ in range(2):
        assert main(["train", "classic", *flag, *shape]) == 130
        (line,) = [text for text in capsys.readouterr().out.splitlines() if "to resume" in text]
        assert line.endswith(f"run: {shlex.join(['epigrok', 'train', 'classic', *shape])}")
    assert main(["train", "classic", *shape]) == 0


def test_going_on_needs_the_plugins_and_does_not_start_over(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = tmp_path / "my plugin.py"
    monkeypatch.setattr("epigrok.commands.train.loaded_plugins", lambda: [plugin])
    shape = ["--num-steps", "4", "--schedule.warmup-steps", "1", *FEW]
    shape += ["--out", str(tmp_path / "run")]
    pause = ["--start-over", "--stop-at-step", "2"]
    assert main(["train", "classic", *shape, *pause]) == 130
    (line,) = [text for text in capsys.readouterr().out.splitlines() if "to resume" in text]
    command = shlex.split(line.partition("run: ")[2])
    assert command == ["epigrok", "--plugin", str(plugin), "train", "classic", *shape]


def test_a_run_that_cannot_begin_leaves_the_terminal_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[object] = []
    monkeypatch.setattr("epigrok.runs.training.reporter_for_person", lambda *_: shown.append(1))
    assert main(["train", "classic", "--out", "/proc/run", "--num-steps", "10"]) == 2
    assert shown == []
