"""The monitor of our own runs: its table, its states after a stop, and what it leaves alone."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_run import EVALUATION, tiny

from epigrok.errors import UserError
from epigrok.evaluation import evaluation_sets
from epigrok.model import build_model
from epigrok.runs import open_run, train
from epigrok.runs.session import TrainOptions
from epigrok.runs.watching import RunMonitor
from epigrok.tasks import build_family, sample_world

CONFIG = tiny(replace(EVALUATION, num_sequences=96, posteriors=("point",)))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("watched") / "run"
    train(CONFIG, folder, TrainOptions(device="cpu"))
    return folder


def test_every_evaluation_has_a_row_for_each_split(trained: Path) -> None:
    rows = open_run(trained).directory.rows("tolerance")
    splits = [split.name for split in CONFIG.task.splits]
    assert [(row["step"], row["split"]) for row in rows] == [
        (step, split) for step in (0, 5, 10, 15, 20) for split in splits
    ]
    watched = [row for row in rows if row["split"] != splits[0]]
    assert all(row["state"] == "fitting" for row in watched)
    first = watched[0]
    seen = next(row for row in rows if row["split"] == splits[0])
    expected = first["tolerance"] / seen["tolerance"]
    assert first["tolerance_ratio"] == pytest.approx(expected)


def test_the_fit_is_judged_by_the_accuracy_that_the_evaluation_found(trained: Path) -> None:
    training = CONFIG.task.splits[0].name

    def by_step(table: str) -> dict[int, dict[str, object]]:
        rows = open_run(trained).directory.rows(table)
        return {row["step"]: row for row in rows if row["split"] == training}

    looked, evaluated = by_step("tolerance"), by_step("metrics")
    for step, row in looked.items():
        assert row["train_accuracy"] == evaluated[step]["accuracy_final"]


def test_the_table_can_be_asked_in_sql(trained: Path) -> None:
    found = open_run(trained).sql("select count(*) from tolerance where state = 'fitting'")
    assert found.fetchall() == [(5 * (len(CONFIG.task.splits) - 1),)]


def test_a_stopped_and_resumed_run_has_the_same_table(trained: Path, tmp_path: Path) -> None:
    train(CONFIG, tmp_path / "run", TrainOptions(device="cpu", stop_at_step=10))
    train(CONFIG, tmp_path / "run", TrainOptions(device="cpu"))
    for file in ("tolerance.jsonl", "metrics.jsonl"):
        assert (tmp_path / "run" / file).read_bytes() == (trained / file).read_bytes()


def test_weights_and_metrics_are_the_same_without_it(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunMonitor, "look", lambda self, step, accuracy: [])
    run = train(CONFIG, tmp_path / "run", TrainOptions(device="cpu"))
    assert run.directory.rows("tolerance") == []
    assert (tmp_path / "run/metrics.jsonl").read_bytes() == (trained / "metrics.jsonl").read_bytes()
    weights = open_run(trained).model().state_dict()
    assert all(torch.equal(weights[name], own) for name, own in run.model().state_dict().items())


def rows_with(ratios: list[float]) -> list[dict[str, object]]:
    """Looks at a fitted model whose watched splits have these ratios."""
    training, *others = (split.name for split in CONFIG.task.splits)
    return [
        row
        for place, ratio in enumerate(ratios)
        for row in (
            {"step": place, "split": training, "chance": 0.1, "train_accuracy": 1.0},
            *(
                {
                    "step": place,
                    "split": split,
                    "tolerance_ratio": ratio,
                    "tolerance_ratio_log_se": 0.01,
                    "steadiness": 1.0,
                    "network_ratio": ratio,
                    "network_ratio_log_se": 0.01,
                }
                for split in others
            ),
        )
    ]


def test_states_go_on_from_the_table_of_an_earlier_process() -> None:
    family = build_family(CONFIG, sample_world(CONFIG.task, CONFIG.task_seed), "cpu")
    sets = evaluation_sets(CONFIG, family)
    monitor = RunMonitor(CONFIG, build_model(CONFIG), sets)
    monitor.go_on(json.loads(json.dumps(rows_with([0.1, 0.1, 0.1, 0.95, 0.95, 0.95]))))
    states = [event.state for event in monitor.events if event.watched == "id_val"]
    assert states == ["memorising", "generalised"]


def test_a_look_is_in_evaluation_mode_so_dropout_has_no_say() -> None:
    family = build_family(CONFIG, sample_world(CONFIG.task, CONFIG.task_seed), "cpu")
    model, modes = build_model(CONFIG), []
    for part in model.modules():
        part.register_forward_pre_hook(lambda module, _: modes.append(module.training))
    RunMonitor(CONFIG, model, evaluation_sets(CONFIG, family)).look(0)
    assert modes
    assert not any(modes)
    assert model.training


def test_splits_that_cannot_be_compared_are_no_reason_not_to_train() -> None:
    family = build_family(CONFIG, sample_world(CONFIG.task, CONFIG.task_seed), "cpu")
    sets = evaluation_sets(CONFIG, family)
    same = dict.fromkeys(sets, next(iter(sets.values())))
    with pytest.warns(UserWarning, match="tolerance is not tracked: 104 of the 104 inputs"):
        monitor = RunMonitor(CONFIG, build_model(CONFIG), same)
    assert monitor.look(0) == []


@pytest.mark.parametrize("change", [{"split": "none"}, {"answers": "a b"}, {"chance": "high"}])
def test_a_table_that_makes_no_sense_is_refused(change: dict[str, str]) -> None:
    family = build_family(CONFIG, sample_world(CONFIG.task, CONFIG.task_seed), "cpu")
    monitor = RunMonitor(CONFIG, build_model(CONFIG), evaluation_sets(CONFIG, family))
    seen, *others = rows_with([0.1])
    with pytest.raises(UserError, match="the table tolerance is damaged"):
        monitor.go_on([seen | change, *others])
