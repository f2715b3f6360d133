"""One process at work on a run: it takes steps, evaluates, saves and reports its status."""

import math
import os
import socket
import time
import warnings
from contextlib import closing
from dataclasses import dataclass

import torch

from epigrok.checkpoint_files import checkpoint_path, checkpoint_steps
from epigrok.config import RunConfig
from epigrok.config.checks import require_non_negative
from epigrok.evaluation import evaluation_sets, tracked_evaluation
from epigrok.evaluation.schema import ACCURACY_FINAL, EPISTEMIC_FINAL
from epigrok.records.directory import RunDirectory
from epigrok.records.holder import LEASE_SECONDS
from epigrok.records.lease import Lease
from epigrok.records.position_shards import remove_position_shards
from epigrok.records.run_tables import RunTables, require_nothing_to_lose
from epigrok.runs.device import DeviceName
from epigrok.runs.evaluating import EvaluateOptions, Subject, evaluate_subject, keep_rows
from epigrok.runs.interruption import StopRequest
from epigrok.runs.progress import Reporter
from epigrok.runs.recording import point_accuracy, record_evaluation, status_scores
from epigrok.runs.watching import RunMonitor
from epigrok.tables.positions import merge_positions
from epigrok.tasks import build_family
from epigrok.training import StepRecord, TrainState, initial_state, training_steps
from epigrok.training.checkpoints import (
    Restored,
    keep_resumable,
    ladder_steps,
    restore_newest,
    write_checkpoint,
)

SECONDS_BETWEEN_STATUS = 2.0


class DivergedError(RuntimeError):
    """The loss or the weights stopped being finite."""


@dataclass(frozen=True)
class TrainOptions:
    """How a run is executed; its numbers do not depend on it, up to the device's rounding."""

    device: DeviceName = "auto"
    checkpoint_seconds: float = 60.0
    """Time between checkpoints, the most work that a crash can lose."""
    compiled: bool | None = None
    """Compile the model, by default on a GPU: minutes once, then faster steps."""
    stop_at_step: int | None = None
    """Pause the run there; a later call goes on."""
    lease_seconds: float = LEASE_SECONDS
    """Time without a sign of life after which another machine may take the run over."""
    start_over: bool = False
    """Begin again at step 0 and lose the steps so far, if the run cannot be resumed."""
    keeps_weights: bool = True
    """Whether a finished run keeps its checkpoints, or its tables alone."""

    def __post_init__(self) -> None:
        require_non_negative(checkpoint_seconds=self.checkpoint_seconds)
        require_non_negative(stop_at_step=self.stop_at_step or 0)


class Session:
    """One process working on a run."""

    def __init__(
        self,
        run: RunDirectory,
        config: RunConfig,
        options: TrainOptions,
        reporter: Reporter,
        device: torch.device,
    ) -> None:
        self._run, self._config, self._options, self._reporter = run, config, options, reporter
        self._family = build_family(config, run.world(), device)
        self._sets = evaluation_sets(config, self._family)
        self._ladder = ladder_steps(config.num_steps, config.num_ladder_checkpoints)
        self._state: TrainState = initial_state(config, device)
        self._first_step = 0
        compiled = device.type == "cuda" if options.compiled is None else options.compiled
        self._steps = training_steps(self._state, self._family, config, compiled)
        self._scores = {
            name: run.status().get(name, {}) for name in (ACCURACY_FINAL, EPISTEMIC_FINAL)
        }
        self._started = self._last_checkpoint = self._last_status = time.monotonic()
        self._seconds_evaluating = 0.0
        self._last_timing = (0.0, 0.0)

    def work(self, stop: StopRequest, lease: Lease) -> None:
        """Take steps until the run is done or a signal asks to stop."""
        self._lease = lease
        # It looks at the untrained network first, also where the run goes on.
        self._monitor = RunMonitor(self._config, self._state.model, self._sets)
        restored = self._restored()
        with closing(self._opened_tables(restored)) as self._tables:
            self._monitor.go_on(self._run.rows("tolerance"))
            self._report_status("running", None)
            if restored is None:
                self._evaluate(0)
                self._checkpoint()
            self._take_steps(stop)

    def _take_steps(self, stop: StopRequest) -> None:
        lease, workspace = self._lease, self._lease.workspace
        pause = self._options.stop_at_step
        last_step = self._config.num_steps if pause is None else min(self._config.num_steps, pause)
        while self._state.step < last_step and not stop:
            record = next(self._steps)
            stop.listen()
            lease.require_held()
            self._after_step(record)
        if self._state.step == self._config.num_steps and self._vary_context(stop):
            lease.require_held()
            self._tables.require_unchanged()
            merge_positions(self._run.path, workspace)
            # Before DONE, so that a finished run has the ladder's weights and no others.
            keep_resumable(workspace, self._run.checkpoints, self._ladder, 1)
            self._warn_of_lost_weights()
            self._report_status("done", None)
            keeps_weights = self._options.keeps_weights
            self._run.mark_done(workspace, keeps_weights)
            remove_position_shards(self._run.path, workspace)
            kept = self._ladder if keeps_weights else []
            keep_resumable(workspace, self._run.checkpoints, kept, 0)
        else:
            self._checkpoint()
            self._report_status("stopped", None)

    def _warn_of_lost_weights(self) -> None:
        lost = set(self._ladder) - set(checkpoint_steps(self._run.checkpoints))
        if lost:
            steps = ", ".join(map(str, sorted(lost)))
            warnings.warn(
                f"somebody removed the weights of step {steps} from {self._run.checkpoints}",
                stacklevel=2,
            )

    def _restored(self) -> Restored | None:
        """Go back to the newest checkpoint; None if there is none, or the run starts over."""
        workspace = self._lease.workspace
        if self._options.start_over:
            for step in checkpoint_steps(self._run.checkpoints):
                workspace.remove(checkpoint_path(self._run.checkpoints, step))
        restored = restore_newest(workspace, self._run.checkpoints, self._state)
        self._first_step = self._state.step
        return restored

    def _opened_tables(self, restored: Restored | None) -> RunTables:
        """The tables as the checkpoint knew them, or empty ones."""
        if restored is None and not self._options.start_over:
            require_nothing_to_lose(self._run)
        extents = {} if restored is None else restored.extents
        return RunTables(self._run, self._lease.workspace, extents)

    def _after_step(self, record: StepRecord) -> None:
        now = time.monotonic()
        is_last = record.step == self._config.num_steps
        is_evaluated = is_last or record.step % self._config.evaluation.every == 0
        is_saved = (
            is_last
            or record.step in self._ladder
            or now - self._last_checkpoint >= self._options.checkpoint_seconds
        )
        is_reported = is_last or now - self._last_status >= SECONDS_BETWEEN_STATUS
        # Reading the loss waits for the device, so read it only when it is needed.
        if is_evaluated or is_saved or is_reported or record.loss.device.type == "cpu":
            self._require_finite(record)
        if is_evaluated:
            self._evaluate(record.step, record)
        if is_saved:
            self._checkpoint()
        if is_reported or is_evaluated:
            self._report_status("running", record)

    def _vary_context(self, stop: StopRequest) -> bool:
        """Evaluate the configured series of contexts; False if a signal asked to stop meanwhile."""
        if not self._config.evaluation.final_series or stop:
            return not stop
        started = time.monotonic()
        state, config = self._state, self._config
        carried = state.carried_posterior()
        subject = Subject(config, state.step, state.model, self._family, carried)

        def is_stopped() -> bool:
            self._lease.require_held()
            return bool(stop)

        for series in config.evaluation.final_series:
            rows = evaluate_subject(subject, EvaluateOptions(), series, is_stopped=is_stopped)
            if rows:
                keep_rows(self._run, series, rows, self._lease.workspace)
        self._seconds_evaluating += time.monotonic() - started
        # The checkpoint of a run that is stopped here would keep the row, and the next end add one.
        if not stop:
            self._record_timing(self._state.step)
        return not stop

    def _evaluate(self, step: int, record: StepRecord | None = None) -> None:
        started = time.monotonic()
        self._require_finite_weights()
        carried = self._state.carried_posterior()
        found = tracked_evaluation(self._config, self._state.model, self._sets, carried, step)
        train_accuracy = point_accuracy(found.metrics, self._config.task.splits[0].name)
        looked = self._monitor.look(step, train_accuracy)
        # The evaluation may have taken so long that another process took over.
        self._lease.require_held()
        self._scores = status_scores(found.metrics)
        record_evaluation(self._tables, found)
        self._tables.append("tolerance", looked)
        if record is not None:
            row = {
                "step": step,
                "loss": record.loss.item(),
                "gradient_norm": record.gradient_norm.item(),
                "learning_rate_scale": record.learning_rate_scale,
                **self._state.optimiser_facts(),
            }
            self._tables.append("training", [row])
        self._seconds_evaluating += time.monotonic() - started
        # The last step's row is written after the series of contexts and includes their time.
        if step < self._config.num_steps or not self._config.evaluation.final_series:
            self._record_timing(step)
        self._reporter.evaluated(step, found.metrics, looked)

    def _record_timing(self, step: int) -> None:
        elapsed = time.monotonic() - self._started
        spent = (elapsed - self._seconds_evaluating, self._seconds_evaluating)
        row = {
            "step": step,
            "seconds_training": spent[0] - self._last_timing[0],
            "seconds_evaluating": spent[1] - self._last_timing[1],
        }
        self._last_timing = spent
        self._tables.append("timings", [row])

    def _checkpoint(self) -> None:
        self._require_finite_weights()
        write_checkpoint(
            self._lease.workspace,
            self._run.checkpoints,
            self._state,
            self._ladder,
            self._tables.extents(),
        )
        self._last_checkpoint = time.monotonic()

    def _require_finite(self, record: StepRecord) -> None:
        for what, value in (("loss", record.loss), ("gradient norm", record.gradient_norm)):
            if not math.isfinite(value.item()):
                raise self._diverged(f"{what} is", record.step)

    def _require_finite_weights(self) -> None:
        if not all(bool(weights.isfinite().all()) for weights in self._state.model.parameters()):
            raise self._diverged("weights are", self._state.step)

    def _diverged(self, what: str, step: int) -> DivergedError:
        return DivergedError(
            f"the {what} not finite at step {step}; the last good checkpoint is kept in "
            f"{self._run.checkpoints}. A lower learning rate or a longer warm-up usually helps."
        )

    def _report_status(self, state: str, record: StepRecord | None) -> None:
        self._last_status = time.monotonic()
        self._run.write_status(self._lease.workspace, **self._status(state, record))
        if record is not None:
            self._reporter.progress(record.step, record.loss.item(), self._steps_per_second())

    def _status(self, state: str, record: StepRecord | None) -> dict[str, object]:
        return {
            "state": state,
            "step": self._state.step,
            "num_steps": self._config.num_steps,
            "loss": record.loss.item() if record is not None else None,
            **self._scores,
            "steps_per_second": self._steps_per_second(),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "updated": time.time(),
        }

    def _steps_per_second(self) -> float:
        elapsed = time.monotonic() - self._started
        return (self._state.step - self._first_step) / elapsed if elapsed > 0 else 0.0
