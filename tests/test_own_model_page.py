"""The code of docs/your-own-model.md runs, and what a user has to write stays short."""

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "your-own-model.md").read_text()
SECTIONS = {
    text.partition("\n")[0]: re.findall(r"```python\n(.+?)```", text, flags=re.DOTALL)
    for text in PAGE.split("\n## ")[1:]
}
NEEDS = {"A plain module": "torch", "Hugging Face": "transformers", "Lightning": "lightning"}
MOST_LINES = {"A plain module": 6, "Hugging Face": 10, "Lightning": 10}


def test_every_section_with_code_is_run_here() -> None:
    assert {name for name, blocks in SECTIONS.items() if blocks} == NEEDS.keys()


@pytest.mark.parametrize("section", NEEDS)
def test_the_blocks_of_a_section_run_and_give_an_uncertainty(section: str) -> None:
    pytest.importorskip(NEEDS[section])
    names: dict[str, Any] = {"__name__": section}
    with warnings.catch_warnings():
        # Lightning's advice on loaders is not about this package.
        warnings.simplefilter("ignore")
        for block in SECTIONS[section]:
            exec(block, names)
    found = names["u"]
    assert found.epistemic[found.is_counted].min() > 0


@pytest.mark.parametrize("section", NEEDS)
def test_what_a_user_writes_is_short(section: str) -> None:
    written = PAGE.partition(f"## {section}\n")[2].partition("What you write:")[2]
    (first, *_) = re.findall(r"```python\n(.+?)```", written, flags=re.DOTALL)
    lines = [line for line in first.splitlines() if line.strip()]
    assert 0 < len(lines) <= MOST_LINES[section]
