"""Curves against the context, with the exact predictor that fits each split."""

from pathlib import Path

import pytest
import torch
from drawn_grid import rows
from table_files import write_positions
from written_runs import write_grid

from epigrok.evaluation import Evaluation, EvaluationRow
from epigrok.evaluation.schema import METRIC_NAMES
from epigrok.figures.catalogue import draw_figure
from epigrok.tables import SweepStore, open_sweep
from epigrok.tables.positions import merge_positions


@pytest.mark.parametrize(
    ("name", "axis", "values"),
    [
        ("context-length", "context_length", [1, 2, 32]),
        ("context-noise", "context_noise", [0.0, 0.5, 1.0]),
    ],
)
def test_each_split_has_the_exact_predictor_that_fits_it(
    name: str, axis: str, values: list[float], store: SweepStore
) -> None:
    drawn = draw_figure(name, store)
    assert "id_train" not in drawn.table["split"]
    exact = {"id_val": "oracle-memorising", "ood_val": "oracle-generalising"}
    accuracy = {"id_val": 0.9, "ood_val": 0.8}
    for split, oracle in exact.items():
        chosen = {"preset": "icl-paper", "quantity": "accuracy", "split": split}
        curves = rows(drawn, **chosen)
        assert {row["posterior"] for row in curves} == {"laplace", oracle}
        floor = rows(drawn, **chosen, posterior=oracle)
        assert [row[axis] for row in floor] == values
        assert {row["median"] for row in floor} == {accuracy[split]}
    assert "oracle-memorising" not in {r["posterior"] for r in rows(drawn, quantity="epistemic")}


def test_context_lengths_are_known_from_training_too(tmp_path: Path) -> None:
    for run in write_grid(tmp_path):
        run.table("context_length").unlink(missing_ok=True)
        evaluations = []
        for step in (0, 300):
            metrics = {name: torch.arange(32.0) + step for name in METRIC_NAMES}
            laplace, exact = (
                EvaluationRow("ood_val", name, 16, 4, {}, metrics, torch.zeros(3, 15))
                for name in ("laplace", "oracle-generalising")
            )
            evaluations.append(Evaluation(step, [laplace], exact=[] if step else [exact]))
        write_positions(run, *evaluations)
        merge_positions(run.path)
    drawn = draw_figure("context-length", open_sweep(tmp_path))
    chosen = {"preset": "icl-paper", "quantity": "aleatoric"}
    curve = rows(drawn, **chosen, posterior="laplace")
    assert [row["median"] for row in curve] == [300.0 + k for k in range(32)]
    floor = rows(drawn, **chosen, posterior="oracle-generalising")
    assert [row["median"] for row in floor] == [float(k) for k in range(32)]
