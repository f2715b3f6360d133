"""Every command that README and documentation show exists and is understood as it is written."""

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import tyro
from doc_blocks import PAGES, ROOT, commands, mentions

from epigrok.cli import COMMANDS, main

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TARGETS = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
STANDS_FOR = {"PRESET": "icl-paper", "STEP": "100", "$s": "0"}


class ParsedError(BaseException):
    """The parser has understood a command; it is not run."""


@pytest.fixture(autouse=True)
def _parse_only(monkeypatch: pytest.MonkeyPatch) -> None:
    parse = tyro.cli

    def stop_there(*arguments: Any, **keywords: Any) -> None:
        parse(*arguments, **keywords)
        raise ParsedError

    monkeypatch.setattr(tyro, "cli", stop_there)


def is_understood(words: Sequence[str]) -> bool:
    try:
        return main([STANDS_FOR.get(word, word) for word in words]) == 0
    except ParsedError:
        return True
    except SystemExit as end:
        return end.code == 0


def completions(words: Sequence[str]) -> Iterator[list[str]]:
    """A mention may leave out what is asked for: `epigrok evaluate` is that of any run."""
    delay = ["--lam", "0.9", "--eps-over-c0", "1e-3"]
    for missing in ([], ["icl-tiny"], ["icl-tiny", "a"], delay):
        yield [*words, *missing]


def shown(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_every_command_of_our_own_is_understood(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = [" ".join(c) for c in commands(page) if c[0] == "epigrok" and not is_understood(c[1:])]
    for words in mentions(page):
        if words[0] == "epigrok" and not any(map(is_understood, completions(words[1:]))):
            wrong.append(" ".join(words))
    capsys.readouterr()
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_every_other_command_has_what_it_names(page: Path) -> None:
    for program, *words in [*commands(page), *mentions(page)]:
        if program == "make":
            assert set(words) <= set(TARGETS), words
        elif program == "pip":
            extras = re.findall(r"\[([\w,]+)\]", " ".join(words))
            named = {name for extra in extras for name in extra.split(",")}
            assert named <= PROJECT["project"]["optional-dependencies"].keys(), words
        elif program == "python":
            file = words[1].replace(".", "/") + ".py" if words[0] == "-m" else words[0]
            assert (ROOT / file).exists(), file
        elif program == "pytest":
            markers = [
                m.partition(":")[0] for m in PROJECT["tool"]["pytest"]["ini_options"]["markers"]
            ]
            assert all((ROOT / word).exists() for word in words if "/" in word), words
            assert "-m" not in words or words[words.index("-m") + 1] in markers, words


def test_a_wrong_command_is_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    assert not is_understood(["train", "icl-tiny", "--optim.rate", "1"])
    assert not is_understood(["sweep"])
    assert not is_understood(["no-such-command"])
    assert is_understood(["sweep", "paper", "--on", "slurm", "--gres", "gpu:4"])
    capsys.readouterr()


def test_commands_are_found() -> None:
    found = [words for page in PAGES for words in (*commands(page), *mentions(page))]
    assert len(found) > 150
    assert {words[1] for words in found if words[0] == "epigrok"} == COMMANDS.keys()
