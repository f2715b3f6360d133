"""The Python blocks of a page, run as a reader would run them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```python\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
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


def _blocks(page: Path, heading: str) -> Iterator[Any]:
    whole, text = page.read_text(), sections(page)[heading]
    for block in BLOCK.finditer(text):
        line = whole[: whole.index(block[1])].count("\n")
        # So that an error names the line of the page.
        yield compile("\n" * line + block[1], str(page), "exec")
