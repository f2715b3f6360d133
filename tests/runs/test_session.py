"""What one process does with a run: it stops where it must, and varies contexts at the end."""

import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_run import EVALUATION, tiny

import epigrok
from epigrok.config import AdamWConfig, ScheduleConfig, preset
from epigrok.errors import UserError
from epigrok.records.checking import check_run
from epigrok.records.directory import RunDirectory
from epigrok.runs import DivergedError, Run, TrainOptions, session
from epigrok.runs.progress import Silent

SERIES = ("context-length", "context-noise")


@pytest.fixture(scope="module")
def with_series(tmp_path_factory: pytest.TempPathFactory) -> Run:
    config = tiny(replace(EVALUATION, final_series=SERIES))
    return epigrok.train(config, tmp_path_factory.mktemp("series"))


def test_training_can_end_with_series_of_contexts(with_series: Run) -> None:
    assert with_series.is_done
    lengths, noises = map(with_series.directory.rows, ("context_length", "context_noise"))
    assert {row["context_length"] for row in lengths} == set(range(1, 7))
    assert {row["context_noise"] for row in noises} == {k / 10 for k in range(11)}
    for rows in (lengths, noises):
        assert {row["step"] for row in rows} == {20}
        assert {row["posterior"] for row in rows} >= set(EVALUATION.posteriors)
        # As many samples as in the final evaluation.
        assert {row["num_samples"] for row in rows} == {1, 3}


def test_the_full_clean_context_scores_as_in_the_final_evaluation(with_series: Run) -> None:
    def point(table: str) -> dict[str, float]:
        rows = with_series.directory.rows(table)
        of_point = [row for row in rows if row["posterior"] == "point"]
        clean = {"context_noise": 0.0, "context_length": 6}
        chosen = [row for row in of_point if all(row.get(k, v) == v for k, v in clean.items())]
        return {row["split"]: row.get("nll_final", row["nll"]) for row in chosen}

    for table in ("context_length", "context_noise"):
        assert point(table) == pytest.approx(point("final"), rel=1e-5)


def test_the_last_timing_counts_the_series_in_and_comes_once(with_series: Run) -> None:
    rows = with_series.directory.rows("timings")
    assert [row["step"] for row in rows] == [0, 5, 10, 15, 20]
    assert rows[-1]["seconds_evaluating"] > max(row["seconds_evaluating"] for row in rows[:-1])


def test_a_stop_during_the_series_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny(replace(EVALUATION, final_series=("context-noise",)))
    evaluate = session.evaluate_subject

    def stopped(*arguments: object, **options: object) -> object:
        os.kill(os.getpid(), signal.SIGTERM)
        return evaluate(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(session, "evaluate_subject", stopped)
    run = epigrok.train(config, tmp_path)
    assert not run.is_done
    assert run.directory.status()["state"] == "stopped"
    assert not (tmp_path / "context-noise.jsonl").exists()
    monkeypatch.undo()
    run = epigrok.train(config, tmp_path)
    assert run.is_done
    assert (tmp_path / "context-noise.jsonl").exists()
    assert check_run(run.directory) == []


@pytest.mark.parametrize("every", [1, 10])
def test_a_run_that_diverges_stops_and_keeps_the_last_checkpoint(
    every: int, tmp_path: Path
) -> None:
    config = tiny(
        # Evaluated after every step, weights that are not finite are met before any loss is.
        replace(EVALUATION, every=every, posteriors=("point", "laplace")),
        optim=AdamWConfig(lr=1e38),
        schedule=ScheduleConfig(warmup_steps=0),
    )
    with pytest.raises(DivergedError, match="not finite at step"):
        epigrok.train(config, tmp_path)
    run = epigrok.open_run(tmp_path)
    status = run.directory.status()
    assert status["state"] == "failed"
    assert "not finite at step" in status["reason"]
    assert all(weights.isfinite().all() for weights in run.model().parameters())


def test_checkpoints_come_as_often_as_asked(tmp_path: Path) -> None:
    run = epigrok.train(tiny(), tmp_path, TrainOptions(stop_at_step=4, checkpoint_seconds=0.0))
    # The ladder's first three, and the newest two, which can be resumed from.
    assert run.checkpoints == [0, 1, 2, 3, 4]
    assert {path.parent.name for path in tmp_path.rglob("resume.pt")} == {"step-3", "step-4"}


@pytest.mark.parametrize("option", ["checkpoint_seconds", "stop_at_step"])
def test_what_cannot_be_is_refused(option: str) -> None:
    with pytest.raises(UserError, match=f"{option} must not be negative, got -1"):
        TrainOptions(**{option: -1})


def test_the_classic_family_has_no_context_to_vary() -> None:
    with pytest.raises(UserError, match="no context to vary"):
        replace(preset("classic"), evaluation=replace(EVALUATION, final_series=("context-noise",)))


class Meddling(Silent):
    """Does something to a run after an evaluation."""

    def __init__(self, meddle: Callable[[], object]) -> None:
        self._meddle = meddle

    def evaluated(self, step: int, *what: object) -> None:
        if step == 15:
            self._meddle()


def test_a_table_that_somebody_removes_meanwhile_is_no_finished_run(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    for _ in range(2):
        with pytest.raises(UserError, match=r"metrics\.jsonl changed after it was written"):
            epigrok.train(tiny(), tmp_path, reporter=Meddling(metrics.unlink))
        assert not RunDirectory(tmp_path).is_done


def test_weights_that_somebody_removes_meanwhile_are_told(tmp_path: Path) -> None:
    first = tmp_path / "checkpoints" / "step-0"
    with pytest.warns(UserWarning, match=r"removed the weights of step 0 from .*checkpoints"):
        run = epigrok.train(tiny(), tmp_path, reporter=Meddling(lambda: shutil.rmtree(first)))
    assert run.is_done
