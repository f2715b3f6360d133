"""The schema of every table, and that what is written keeps to it."""

import pytest
from small_tasks import family_of, two_parameter_run

from epigrok.evaluation import evaluation_sets, tracked_evaluation
from epigrok.evaluation.schema import (
    ACCURACY_FINAL,
    EPISTEMIC_FINAL,
    METRIC_NAMES,
    SERIES_TABLES,
    TABLES,
    TOTAL_FINAL,
    TRAINING_TABLES,
    Table,
)
from epigrok.model import build_model
from epigrok.posteriors import posterior_kinds


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_a_table_has_each_column_once_and_says_what_it_means(table: Table) -> None:
    names = [column.name for column in table.columns]
    assert len(set(names)) == len(names)
    assert table.meaning
    assert all(column.meaning for column in table.columns)
    assert names[0] == "step"


def test_files_belong_to_one_table_and_positions_are_kept_otherwise() -> None:
    files = [table.file for table in TABLES.values() if table.file]
    assert len(set(files)) == len(files)
    without = {name for name, table in TABLES.items() if not table.file}
    assert without == {"positions", "final_positions", "exact_positions"}


def test_tables_that_are_named_elsewhere_exist() -> None:
    assert {*TRAINING_TABLES, *SERIES_TABLES.values()} <= set(TABLES)
    types = {column.name: column.type for column in TABLES["metrics"].columns}
    assert {types[name] for name in (ACCURACY_FINAL, EPISTEMIC_FINAL, TOTAL_FINAL)} == {"number"}


def test_a_column_keeps_its_type_and_unit_in_every_table() -> None:
    # Accuracy and confidence of a calibration bin are of the bin, but still numbers without unit.
    kinds: dict[str, set[tuple[str, str]]] = {}
    for table in TABLES.values():
        for column in table.columns:
            kinds.setdefault(column.name, set()).add((column.type, column.unit))
    assert all(len(found) == 1 for found in kinds.values())
    assert {unit for ((_, unit),) in kinds.values()} == {"", "nats", "seconds"}


def test_facts_of_posteriors_are_no_columns_that_tables_have_already() -> None:
    own = {column.name for table in TABLES.values() for column in table.columns}
    facts = [fact.name for kind in posterior_kinds().values() for fact in kind.facts]
    assert facts
    assert not own & set(facts)


def test_an_evaluation_has_the_metrics_of_the_schema() -> None:
    config = two_parameter_run(num_steps=3)
    sets = evaluation_sets(config, family_of(config))
    evaluation = tracked_evaluation(config, build_model(config), sets, None, step=3)
    columns = {column.name for column in TABLES["final"].columns}
    for _, rows in evaluation.tables():
        for row in rows:
            assert set(METRIC_NAMES) == set(row.per_context_length)
            assert set(METRIC_NAMES) <= set(row.summary) <= columns
