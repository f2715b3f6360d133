"""What a column is."""

from dataclasses import FrozenInstanceError

import pytest

from epigrok.columns import Column


def test_a_column_is_a_value_without_unit_unless_told() -> None:
    column = Column("accuracy", "number", "share of right answers")
    assert column.unit == ""
    assert {column, Column("accuracy", "number", "share of right answers")} == {column}
    assert column != Column("accuracy", "number", "share of right answers", "nats")
    with pytest.raises(FrozenInstanceError):
        column.name = "other"  # type: ignore[misc]
