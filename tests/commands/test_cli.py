"""The command line: help, mistakes as one sentence, exit codes."""

import sys
from pathlib import Path

import pytest

from epigrok.cli import COMMANDS, main


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in COMMANDS)
    assert main(["--version"]) == 0


def test_presets_lists_all_four(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in ("classic", "icl-tiny", "icl-medium", "icl-paper"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-command"], "no-such-command"),
        (["train"], "name a preset"),
        (["train", "icl-huge"], "icl-huge"),
        (["train", "icl-paper", "--batch-size", "1000"], "1000"),
        (["train", "icl-paper", "--task.train-fraction", "1.5"], "1.5"),
        (["train", "icl-paper", "--task.modulus", "28"], "28"),
        (["train", "classic", "--optim.lrr", "1"], "--optim.lr"),
        (["train", "classic", "--out", "/proc/run", "--num-steps", "10"], "/proc/run"),
        (["train", "classic", "--device", "cuda"], "cuda"),
        (["train", "classic", "--device", "tpu"], "tpu"),
    ],
)
def test_mistakes_end_in_exit_code_2_and_a_sentence(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit) as exit_request:
        sys.exit(main(arguments))
    captured = capsys.readouterr()
    assert exit_request.value.code == 2
    assert message in captured.err + captured.out
    assert "Traceback" not in captured.err


def test_a_changed_recipe_is_told_so_in_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    small = ["--num-steps", "3", "--schedule.warmup-steps", "2", "--batch-size", "64"]
    assert main(["train", "classic", "--out", str(tmp_path / "run"), *small]) == 0
    text = capsys.readouterr().out
    assert text.count("note:") == 1
    assert "batch size 64 instead of 512, warm-up 2 instead of 10" in text
    assert main(["train", "classic", "--out", str(tmp_path / "run"), *small]) == 0
    assert "is finished; nothing to do" in capsys.readouterr().out
