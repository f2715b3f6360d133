"""`epigrok columns` prints the schema, and the page of the docs is what it prints."""

from pathlib import Path

import pytest

from epigrok.cli import main
from epigrok.evaluation.schema import TABLES
from epigrok.tables.queries import LATEST

PAGE = Path(__file__).resolve().parents[3] / "docs" / "columns.md"


def test_the_page_of_the_docs_is_what_the_command_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["columns"]) == 0
    assert capsys.readouterr().out == PAGE.read_text()


@pytest.mark.parametrize("name", TABLES)
def test_one_table_has_all_its_own_columns(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["columns", name]) == 0
    text = capsys.readouterr().out
    assert all(f"`{column.name}`" in text for column in TABLES[name].key)


@pytest.mark.parametrize("name", ["runs", *LATEST])
def test_a_view_of_several_tables_is_explained_too(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["columns", name]) == 0
    assert f"`{name}`" in capsys.readouterr().out


def test_an_unknown_table_is_answered_with_those_that_exist(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["columns", "metric"]) == 2
    error = capsys.readouterr().err
    assert "no table named 'metric'; there are: metrics, final" in error
    assert "runs, latest, latest_positions" in error
