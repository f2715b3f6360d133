"""What `run.json` says of a configuration."""

from dataclasses import replace
from pathlib import Path

import pytest
from tiny_run import EVALUATION, tiny

from epigrok.config import preset
from epigrok.errors import UserError
from epigrok.records.directory import RunDirectory
from epigrok.runs.describing import describe, write_identity


def test_a_run_in_context_is_described() -> None:
    found = describe(tiny())
    assert (found.num_classes, found.num_examples, found.plugins) == (31, 6, ())
    assert found.splits == tiny().task.splits
    roles = {posterior.name: posterior.role for posterior in found.posteriors}
    assert roles == {"point": "point", "laplace": "inferred", "weight-noise:0.1": "control"}
    facts = {p.name: [fact.name for fact in p.facts] for p in found.posteriors}
    assert {"prior_precision", "num_fit_answers"} <= set(facts["laplace"])
    assert facts["point"] == []


def test_the_classic_task_has_no_context() -> None:
    found = describe(preset("classic"))
    assert (found.num_classes, found.num_examples) == (59, 1)
    assert [split.name for split in found.splits] == ["id_train", "id_val"]


@pytest.mark.parametrize(
    ("posterior", "message"),
    [
        ("nowhere", "no posterior named 'nowhere'"),
        ("ivon", "ivon"),
        ("laplace:-1", "laplace:-1"),
        ("point:1", "takes no value, got 'point:1'"),
    ],
)
def test_a_posterior_that_does_not_exist_for_the_run_is_refused(
    posterior: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        describe(tiny(replace(EVALUATION, posteriors=(posterior,))))


def test_what_is_written_makes_a_run_directory(tmp_path: Path) -> None:
    write_identity(tmp_path, tiny())
    run = RunDirectory(tmp_path)
    assert run.config() == tiny()
    assert run.description() == describe(tiny())
