"""The command line: help, mistakes as one sentence, exit codes."""

import re
import shlex
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path

import pytest

import epigrok.__main__
from epigrok.cli import COMMANDS, main
from epigrok.exit_codes import EXIT_FAILED, EXIT_STOPPED


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in COMMANDS)
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"epigrok {epigrok.__version__}\n"


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"train"}))
def test_positional_arguments_have_names_that_say_what_they_are(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with suppress(SystemExit):
        main([name, "--help"])
    usage = capsys.readouterr().out.splitlines()[0]
    assert not {"STR", "PATH"} & set(re.sub(r"--[\w-]+ \S+", "", usage).split())


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
        (["sweep", "smoke", "--steps-per-second", "0"], "must be positive, got 0"),
        (["sweep", "smoke", "--retries", "-1"], "--retries must not be negative, got -1"),
        (["bench", "classic", "--steps", "0"], "steps must be positive, got 0"),
        (["bench", "classic", "--packed", "-1"], "packed must not be negative, got -1"),
        (["--plugin"], "--plugin needs the path of a Python file"),
        (["--plugin=nowhere.py", "presets"], "there is no plugin file"),
        (["status", ".", "--every", "-1"], "every must be positive, got -1"),
        (["sweep", "smoke", "--lease-seconds", "0"], "lease_seconds must be positive, got 0"),
        (["train", "classic", "--out", "/proc/version"], "cannot write to /proc/version"),
        (["demo", "--out", "/proc/demo"], "cannot write to /proc/demo"),
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

    monkeypatch.setattr("epigrok.commands.lists.presets.main", fails)
    assert main(["presets"]) == EXIT_FAILED
    assert re.fullmatch(r"epigrok: not enough memory .* 64 .*\n", capsys.readouterr().err)


@pytest.mark.parametrize("stream", [1, 2])
def test_a_process_without_output_works_all_the_same(stream: int, grid: Path) -> None:
    command = shlex.join([sys.executable, "-m", "epigrok", "status", str(grid)])
    ended = subprocess.run(f"{command} {stream}>&-", shell=True, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert bool(ended.stdout) == (stream == 2)


def test_an_interrupt_while_the_program_loads_shows_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("epigrok.cli.main", interrupted)
    assert epigrok.__main__.main() == EXIT_STOPPED
    assert capsys.readouterr() == ("", "")


def test_a_full_disk_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(_: list[str]) -> int:
        raise OSError(28, "No space left on device", "runs/a/metrics.jsonl")

    monkeypatch.setattr("epigrok.commands.lists.presets.main", fails)
    assert main(["presets"]) == EXIT_FAILED
    told = "epigrok: No space left on device: runs/a/metrics.jsonl\n"
    assert capsys.readouterr().err == told


def test_errors_that_are_not_about_memory_keep_their_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(_: list[str]) -> int:
        raise RuntimeError("a bug")

    monkeypatch.setattr("epigrok.commands.lists.presets.main", fails)
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


def test_a_plugin_is_loaded_wherever_it_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, place in enumerate((0, 1)):
        file = tmp_path / f"plugin_of_cli_{number}.py"
        file.write_text(
            "from epigrok import preset, register_preset\n"
            f"@register_preset('mine-{number}')\n"
            "def mine():\n"
            "    'A recipe of my own.'\n"
            "    return preset('classic')\n"
        )
        arguments = ["presets"]
        arguments[place:place] = ["--plugin", str(file)] if number else [f"--plugin={file}"]
        assert main(arguments) == 0
        assert f"mine-{number}" in capsys.readouterr().out
