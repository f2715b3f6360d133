"""The code blocks and commands of a page, run or read as a reader would."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
COMMAND = r"(?:[A-Z_]+=\S*\s+)*(?:epigrok|make|pip|python|pytest)\s"
SPAN = re.compile(rf"(?<!`)`({COMMAND}[^`]+)`")
LINE = re.compile(rf"^ *({COMMAND}.+)$", flags=re.MULTILINE)
INDENTED = re.compile(r"^ {4}.*$", flags=re.MULTILINE)
INTRODUCTION = ""


def sections(page: Path) -> dict[str, str]:
    """Heading -> text of each section `## …`; what comes before the first has an empty one."""
    parts = re.split(r"^## (.+)$\n", page.read_text(), flags=re.MULTILINE)
    return dict(zip([INTRODUCTION, *parts[1::2]], parts[::2]))


def sections_with_code(page: Path) -> list[str]:
    """Headings of the sections that have blocks to run."""
    return [name for name, text in sections(page).items() if name and BLOCK.search(text)]


def run_section(page: Path, heading: str) -> dict[str, Any]:
    """Run the blocks of the introduction, then those of a section; returns the names they made."""
    names: dict[str, Any] = {"__name__": page.stem}
    for code in (*_blocks(page, INTRODUCTION), *_blocks(page, heading)):
        exec(code, names)
    return names


def run_page(page: Path, **names: Any) -> dict[str, Any]:
    """Run all blocks of a page, one after the other."""
    for heading in sections(page):
        for code in _blocks(page, heading):
            exec(code, names)
    return names


def _blocks(page: Path, heading: str) -> Iterator[Any]:
    whole, text = page.read_text(), sections(page)[heading]
    for block in BLOCK.finditer(text):
        line = whole[: whole.index(block[1])].count("\n")
        # So that an error names the line of the page.
        yield compile("\n" * line + block[1], str(page), "exec")


def fenced(page: Path) -> list[tuple[str, str]]:
    """(language, text) of each fenced block."""
    return FENCE.findall(page.read_text())


def commands(page: Path) -> list[list[str]]:
    """Commands in blocks of a page, indented or fenced without a language, as words."""
    blocks = [code for language, code in fenced(page) if not language]
    blocks += INDENTED.findall(FENCE.sub("", page.read_text()))
    return [_words(line) for line in LINE.findall("\n".join(blocks).replace("\\\n", " "))]


def mentions(page: Path) -> list[list[str]]:
    """Commands in the running text of a page, whole or shortened, as words."""
    return [
        _words(span.replace("\n", " ")) for span in SPAN.findall(FENCE.sub("", page.read_text()))
    ]


def _words(line: str) -> list[str]:
    words = shlex.split(line, comments=True)
    return [word for word in words if not re.fullmatch(r"[A-Z_]+=\S*", word)]
