"""What the README promises exists."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from epigrok.cli import COMMANDS, main

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
README = (ROOT / "README.md").read_text()


def test_every_command_in_the_readme_exists() -> None:
    named = set(re.findall(r"^    epigrok (\w+)", README, flags=re.MULTILINE))
    assert named
    assert named <= COMMANDS.keys()


def commands_of(page: Path) -> Iterator[tuple[str, ...]]:
    """Commands of a page, in code spans and blocks, as words without comments."""
    text = page.read_text().replace("\\\n", " ")
    for span in re.findall(r"(?<!`)`(epigrok [^`]+)`", text) + re.findall(
        r"^(?: {4})?(epigrok .+)$", text, flags=re.MULTILINE
    ):
        yield tuple(span.partition(" #")[0].split()[1:])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_flag_that_a_page_names_exists(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command, *words in commands_of(page):
        flags = [word.partition("=")[0] for word in words if word.startswith("--")]
        if command not in COMMANDS or set(flags) <= {"--help"}:
            continue
        # The first word of some commands decides what others there are.
        decides = command == "train" or words[0] == "delay"
        first = ["icl-paper" if word == "PRESET" else word for word in words[:decides]]
        with suppress(SystemExit):
            main([command, *first, "--help"])
        text = capsys.readouterr().out
        for flag in flags:
            assert re.search(rf"{re.escape(flag)}\b", text), f"epigrok {command} has no {flag}"


def test_every_link_in_the_readme_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert all((ROOT / link).exists() for link in links)


def test_every_folder_of_the_map_exists() -> None:
    names = re.findall(r"^\| `([\w/.]+)`", README, flags=re.MULTILINE)
    assert len(names) > 8
    package = ROOT / "src" / "epigrok"
    assert all((package / name).exists() for name in names)
    rooms = {path.parent.name for path in package.glob("*/__init__.py")}
    assert {f"{room}/" for room in rooms} <= set(names)


def test_every_make_target_in_the_readme_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^    make (\S+)", README, flags=re.MULTILINE)
    assert targets
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)


def test_every_function_that_contributors_are_sent_to_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text().partition("Where is")[2]
    rows = re.findall(r"^\| .+\? \| (.+?) \| (.+?) \|$", text, flags=re.MULTILINE)
    assert len(rows) >= 10
    for functions, files in rows:
        sources = [
            (ROOT / "src/epigrok" / name).read_text() for name in re.findall("`(.+?)`", files)
        ]
        for function in re.findall("`(.+?)`", functions):
            name = function.rpartition(".")[2]
            defined = rf"^ *(def|class) {name}\b|^{name} ="
            assert any(re.search(defined, source, re.MULTILINE) for source in sources), function
