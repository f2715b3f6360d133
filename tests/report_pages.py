"""What tests of the report share: a page taken apart, and figures that are quick to draw."""

import csv
from html.parser import HTMLParser
from pathlib import Path


class Document(HTMLParser):
    """The elements of a page, and its text without tags."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(file.read_text())
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data + " "

    def attributes(self, name: str) -> list[str]:
        return [values[name] or "" for _, values in self.elements if name in values]


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open() as lines:
        return list(csv.DictReader(lines))
