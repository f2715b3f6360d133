"""Rows against their schema, and tables against their recorded extents."""

from hashlib import blake2b
from pathlib import Path

import pytest

from epigrok.evaluation.schema import TABLES
from epigrok.records.table_checks import extent_problem, parsed_row, row_problem, table_content

TIMINGS = TABLES["timings"]


def extent(content: bytes) -> dict[str, object]:
    digest = blake2b(content).hexdigest()
    return {"rows": content.count(b"\n"), "bytes": len(content), "digest": digest}


def test_a_table_may_grow_only_while_its_run_goes_on() -> None:
    known = extent(b'{"step": 0}\n')
    longer = b'{"step": 0}\n{"step": 1}\n'
    assert extent_problem(b'{"step": 0}\n', known, is_whole=True) is None
    assert extent_problem(longer, known, is_whole=False) is None
    expected = "it has 2 rows and 24 bytes, not 1 and 12"
    assert extent_problem(longer, known, is_whole=True) == expected
    assert "digest differs" in str(extent_problem(b'{"step": 3}\n', known, is_whole=False))
    assert "it has 0 rows" in str(extent_problem(b"", known, is_whole=False))
    assert "is damaged" in str(extent_problem(b"", {"rows": "1"}, is_whole=False))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"step": 0}\n{"step": 1, "seconds_training": 2}\n', None),
        (b'{"step": 0, "seconds_training": null}\n', None),
        (b'{"step": 0}\n{"st', "its last line, 2, is cut short"),
        (b"[]\n", "its line 1 is not a JSON object"),
        (b'{"step": 0, "seconds_training": NaN}\n', "its line 1 is not a JSON object"),
        (b"[" * 100_000 + b"\n", "its line 1 is not a JSON object"),
        (b'{"step": true}\n', "its line 1 has True as step, which is not of type integer"),
        (b'{"step": 0.5}\n', "its line 1 has 0.5 as step, which is not of type integer"),
        (b'{"seconds_training": 1.0}\n', "its line 1 has no step"),
        (b'{"step": 0}\n{"step": 0}\n', "its line 2 repeats the step of an earlier one"),
    ],
)
def test_the_first_problem_of_the_rows_is_told(content: bytes, problem: str | None) -> None:
    assert row_problem(TIMINGS, {}, content, may_be_cut=False) == problem


def test_a_last_line_may_be_cut_while_somebody_writes() -> None:
    assert row_problem(TIMINGS, {}, b'{"step": 0}\n{"st', may_be_cut=True) is None


def test_facts_are_columns_where_a_table_has_them() -> None:
    line = b'{"step": 0, "split": "a", "posterior": "b", "prior": 1.0}\n'
    facts = {"prior": "number"}
    assert row_problem(TABLES["metrics"], facts, line, may_be_cut=False) is None
    for table, known in ((TABLES["metrics"], {}), (TABLES["exact"], facts)):
        assert "does not know" in str(row_problem(table, known, line, may_be_cut=False))


def test_a_line_is_an_object_or_nothing(tmp_path: Path) -> None:
    assert parsed_row(b'{"a": 1}') == {"a": 1}
    assert parsed_row(b"1") is None
    assert table_content(tmp_path / "nothing") is None
