"""The code in the documentation runs."""

from pathlib import Path

import pytest
from doc_blocks import run_section, sections, sections_with_code

PAGE = Path(__file__).resolve().parents[1] / "docs" / "ivon-in-your-loop.md"


# Lightning and Transformers warn of their own settings.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("heading", sections_with_code(PAGE))
def test_the_blocks_of_a_section_run(
    heading: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_section(PAGE, heading)


def test_blocks_are_found_and_an_error_names_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\na = 2\n```\n## One\nText\n```python\nb = a / 0\n```\n## Two\nNo code\n"
    )
    assert list(sections(page)) == ["", "One", "Two"]
    assert sections_with_code(page) == ["One"]
    with pytest.raises(ZeroDivisionError) as found:
        run_section(page, "One")
    assert (found.traceback[-1].path, found.traceback[-1].lineno) == (page, 6)
