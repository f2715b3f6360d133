"""The command line: help, mistakes as one sentence, exit codes."""

import re
import shlex
import sys
import warnings
from contextlib import suppress
from pathlib import Path

import pytest

import epigrok
from epigrok.cli import COMMANDS, main
from epigrok.commands import demo
from epigrok.config import preset, presets
from epigrok.exit_codes import EXIT_FAILED
from epigrok.experiments.progress import LiveLine
from epigrok.experiments.zoo import unpacked


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in COMMANDS)
    assert main(["--version"]) == 0


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"train", "bench"}))
def test_positional_arguments_have_names_that_say_what_they_are(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with suppress(SystemExit):
        main([name, "--help"])
    usage = capsys.readouterr().out.splitlines()[0]
    assert not {"STR", "PATH"} & set(re.sub(r"--[\w-]+ \S+", "", usage).split())


def test_presets_lists_each_on_a_line_with_its_name_apart(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["presets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == presets()
    assert len({len(line) - len(line.split("  ", 1)[1].lstrip()) for line in lines}) == 1


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
        (["train", "classic", "--stop-at-step", "-1"], "stop_at_step must not be negative, got -1"),
        (["evaluate", "zoo:icl-tiny", "--posteriors", "point", "point"], "twice in point, point"),
        (["status", ".", "--every", "-1"], "every must be positive, got -1"),
        (["sweep", "smoke", "--lease-seconds", "0"], "lease_seconds must be positive, got 0"),
        (["train", "classic", "--out", "/proc/version"], "cannot write to /proc/version"),
        (["theory", "--seed", "-1"], "the seed must not be negative, not -1"),
        (["evaluate", "nowhere"], "error: nowhere is not a run directory"),
        (["bench", "classic", "--json", "/proc/none/x.json"], "cannot write to /proc/none"),
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


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("64 GiB"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 64 bytes"),
        RuntimeError("CUDA out of memory. Tried to allocate 64 GiB."),
    ],
)
def test_sizes_no_machine_can_hold_end_in_a_sentence(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(_: list[str]) -> int:
        raise error

    monkeypatch.setattr("epigrok.commands.presets.main", fails)
    assert main(["presets"]) == EXIT_FAILED
    assert re.fullmatch(r"epigrok: not enough memory .* 64 .*\n", capsys.readouterr().err)


def test_errors_that_are_not_about_memory_keep_their_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(_: list[str]) -> int:
        raise RuntimeError("a bug")

    monkeypatch.setattr("epigrok.commands.presets.main", fails)
    with pytest.raises(RuntimeError, match="a bug"):
        main(["presets"])


def test_warnings_of_ours_are_sentences_too() -> None:
    main(["--version"])
    inside, outside = Path(epigrok.__file__).with_name("files.py"), Path(__file__)
    text = [
        warnings.formatwarning("a run is damaged", category, str(file), 7)
        for category, file in (
            (UserWarning, inside),
            (UserWarning, outside),
            (FutureWarning, inside),
        )
    ]
    assert text[0] == "epigrok: warning: a run is damaged\n"
    assert all(
        f":7: {name}: a run" in other
        for other, name in zip(text[1:], ("UserWarning", "FutureWarning"))
    )


def test_a_changed_recipe_is_told_so_in_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    small = ["--num-steps", "3", "--schedule.warmup-steps", "2", "--batch-size", "64"]
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


@pytest.mark.parametrize("flag", [["--stop-at-step", "2"], ["--stop-at-step=2"]])
def test_a_pause_is_not_part_of_how_to_go_on(
    flag: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shape = ["--num-steps", "4", "--schedule.warmup-steps", "1", "--out", str(tmp_path / "run")]
    for _ in range(2):
        assert main(["train", "classic", *flag, *shape]) == 130
        (line,) = [text for text in capsys.readouterr().out.splitlines() if "to resume" in text]
        assert line.endswith(f"run: {shlex.join(['epigrok', 'train', 'classic', *shape])}")
    assert main(["train", "classic", *shape]) == 0


@pytest.mark.parametrize("command", ["status", "separation"])
def test_runs_that_come_with_the_package_are_named_alike_everywhere(
    command: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([command, "zoo:icl-tiny"]) == 0
    assert "icl-tiny" in capsys.readouterr().out


def test_a_run_that_cannot_begin_leaves_the_terminal_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = LiveLine(10, 0)
    monkeypatch.setattr("epigrok.commands.train.reporter_for_terminal", lambda *_: line)
    assert main(["train", "classic", "--out", "/proc/run", "--num-steps", "10"]) == 2
    assert not line._progress.live.is_started
    line.close()


def test_the_demo_walks_along_the_run_that_comes_with_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "LADDER_SAMPLES", 2)
    lines = demo.ladder_lines(unpacked(demo.LADDER, tmp_path))
    rows = [line.split() for line in lines if ", EU 0" in line]
    steps = epigrok.open_run(tmp_path / demo.LADDER).checkpoints
    assert [int(row[0]) for row in rows] == steps
    held_out = [(float(row[4].strip(",")), float(row[6])) for row in rows]
    assert held_out[0][0] < 0.2
    assert held_out[-1][0] > 0.9
    # Uncertainty is largest on the way, not at either end.
    assert held_out[-1][1] < max(uncertainty for _, uncertainty in held_out[1:]) / 2
