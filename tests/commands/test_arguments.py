"""Arguments of commands, read into dataclasses."""

from dataclasses import dataclass

import pytest

from epigrok.cli import main
from epigrok.commands.arguments import parse, preset_and_rest
from epigrok.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What to do."""

    number: int = 3


def test_flags_fill_the_fields() -> None:
    assert parse(Asked, "ask", ["--number", "5"]) == Asked(number=5)
    assert parse(Asked, "ask", [], default=Asked(number=7)) == Asked(number=7)


def test_the_presets_name_comes_first() -> None:
    assert preset_and_rest("train", ["classic", "--num-steps", "3"]) == (
        "classic",
        ["--num-steps", "3"],
    )
    with pytest.raises(UserError, match="name a preset first"):
        preset_and_rest("train", ["--num-steps", "3"])
    with pytest.raises(UserError, match="no preset named 'clasic'"):
        preset_and_rest("train", ["clasic"])


def test_help_without_a_preset_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        preset_and_rest("train", ["--help"])
    assert "icl-paper" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--out", ""], ["--out="]])
def test_an_empty_path_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "classic", *arguments]) == 2
    assert "--out has an empty value" in capsys.readouterr().err
