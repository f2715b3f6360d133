"""The numbers in the running text of a page, compared with the files they come from.

    PYTHONPATH=. python -m benchmarks.prose_numbers   # which numbers have no source?

A page says in a comment before a paragraph, a list or a table where its numbers come from:

    <!-- numbers
    given: 0.95 500
    select two(max(accuracy_final)), thousands(max(step)) from 'icl-small/metrics.parquet'
    -->
    From accuracy 0.95 on, …

Every number that the query returns must stand in the paragraph. `given` are numbers that nobody
measured, such as definitions. A number in words, code or a date is not looked at. The README has a
test of its own.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.result_tables import FOLDER, TABLE, cells_of

DOCS = FOLDER.parent
PAGES = (
    DOCS / "cost.md",
    DOCS / "monitor.md",
    *sorted(FOLDER.glob("*.md")),
    FOLDER / "detection" / "README.md",
    FOLDER / "paper-small" / "README.md",
    FOLDER / "paper-tiny" / "README.md",
)
_NUMBER = re.compile(r"(?<![\w.-])\d(?:[\d,]*\d)?(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
_SOURCE = re.compile(r"<!-- numbers\n(?:given: (?P<given>[^\n]*)\n)?(?P<query>.*?)-->\n", re.DOTALL)
_NOT_PROSE = re.compile(
    r"""<!--.*?-->           # comments
    |^```.*?^```$            # code, in its three forms
    |^[ ]{4}[^\n]*$
    |`[^`]+`
    |\]\([^)]*\)             # where links lead
    |<img[ ].*?>             # which a test of its own reads
    |\d{4}-\d\d-\d\d         # dates
    |(?:torch|triton|Python|arXiv:|Rossi)\s?\d[\d.]*  # versions, the paper
    |^\d[.][ ]               # the places of a list
    |[Ss]eeds?\s\d(?:(?:,|\sand|,\sand)\s\d)*   # the names of runs
    |^\#[^\n]*$              # headings repeat
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)


@dataclass(frozen=True)
class Paragraph:
    """A paragraph, list or table, its numbers, and where they come from."""

    text: str
    given: frozenset[str]
    query: str

    @property
    def numbers(self) -> list[str]:
        """Every number of the running text, in its order."""
        return _NUMBER.findall(_NOT_PROSE.sub(" ", self.text))

    def found(self, folder: Path) -> set[str]:
        """The numbers that the query returns."""
        rows = cells_of(self.query, folder)[1:] if self.query else []
        return {number for row in rows for cell in row for number in _NUMBER.findall(cell)}


def paragraphs(page: Path) -> Iterator[Paragraph]:
    """The paragraphs of a page, without the tables that are made from queries."""
    text = TABLE.sub("", page.read_text())
    # A comment belongs to what follows it at once.
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    for block in re.split(r"\n\s*\n", text):
        source = _SOURCE.search(block)
        given = (source["given"] or "").split() if source else []
        query = source["query"].strip() if source else ""
        yield Paragraph(block, frozenset(given), query)


def mistakes(page: Path) -> list[str]:
    """What is wrong with the numbers of a page."""
    wrong = []
    for paragraph in paragraphs(page):
        numbers, found = set(paragraph.numbers), paragraph.found(page.parent)
        told = " ".join(_NOT_PROSE.sub(" ", paragraph.text).split())[:60]
        for number in sorted(numbers - found - paragraph.given):
            wrong.append(f"{number} has no source: {told} …")
        for number in sorted(found - numbers):
            wrong.append(f"the data say {number}: {told} …")
        for number in sorted(paragraph.given - numbers):
            wrong.append(f"{number} is given and not used: {told} …")
    return wrong


def counts(page: Path) -> tuple[int, int]:
    """How many numbers of a page are compared with data, and how many are given."""
    compared = given = 0
    for paragraph in paragraphs(page):
        found = paragraph.found(page.parent)
        compared += sum(number in found for number in paragraph.numbers)
        given += sum(number not in found for number in paragraph.numbers)
    return compared, given


def main() -> None:
    """Print the mistakes of all pages, and how many numbers each has."""
    for page in PAGES:
        compared, given = counts(page)
        print(f"{page.relative_to(DOCS.parent)}: {compared} compared with data, {given} given")
        for mistake in mistakes(page):
            print(f"  {mistake}")


if __name__ == "__main__":
    main()
