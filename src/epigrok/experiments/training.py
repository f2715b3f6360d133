"""A run from its configuration to DONE, stoppable and resumable at any moment."""

import math
import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from epigrok.config import RunConfig
from epigrok.config.checks import require_non_negative
from epigrok.errors import UserError
from epigrok.evaluation import evaluation_sets, tracked_rows
from epigrok.experiments.device import DeviceName, choose_device
from epigrok.experiments.evaluate_run import EvaluateOptions, evaluate_run
from epigrok.experiments.interruption import StopRequest, stop_on_signal
from epigrok.experiments.lease import SECONDS, Lease, LeaseLostError, hold_lease
from epigrok.experiments.position_shards import merge_positions, remove_position_shards
from epigrok.experiments.progress import Reporter, Silent
from epigrok.experiments.run import Run
from epigrok.experiments.run_directory import (
    STATUS_SCORES,
    forget_rows_after,
    open_or_create,
    record_calibration,
    record_evaluation,
    require_same_config,
    status_scores,
)
from epigrok.experiments.run_files import RunDirectory
from epigrok.files import append_json_lines, make_writable_directory
from epigrok.posteriors import IVON
from epigrok.tasks import build_family
from epigrok.training import StepRecord, TrainState, initial_state, training_steps
from epigrok.training.checkpoints import (
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
    """How a run is executed; it is the same run on any device, up to the device's rounding."""

    device: DeviceName = "auto"
    checkpoint_seconds: float = 60.0
    """Time between checkpoints, the most that a crash can cost."""
    compiled: bool | None = None
    """Compile the model, by default on a GPU: minutes once, then faster steps."""
    stop_at_step: int | None = None
    """Pause the run there; a later call goes on."""
    lease_seconds: float = SECONDS
    """Silence after which another machine may take the run over."""

    def __post_init__(self) -> None:
        require_non_negative(checkpoint_seconds=self.checkpoint_seconds)
        require_non_negative(stop_at_step=self.stop_at_step or 0)


def train(
    config: RunConfig,
    run_dir: Path | str,
    options: TrainOptions | None = None,
    reporter: Reporter | None = None,
) -> Run:
    """Train, or resume, the run of `config` in `run_dir`; a finished run is returned as it is.

    Args:
        config: What to learn and how.
        run_dir: Where results live; made if need be.
        options: Device, checkpoint interval, early pause.
        reporter: Told of every bit of progress.

    Returns:
        The run; `run.is_done` tells whether it took its last step or was stopped before.
    """
    if not isinstance(config, RunConfig):
        raise UserError(f"a RunConfig is needed, such as preset('classic'), not {config!r}")
    options, reporter = options or TrainOptions(), reporter or Silent()
    device = choose_device(options.device)
    run = RunDirectory(Path(run_dir))
    if run.is_done:
        require_same_config(run, config)
        return Run(run)
    make_writable_directory(run.path)
    with (
        closing(reporter),
        stop_on_signal() as stop,
        hold_lease(run.path, options.lease_seconds) as lease,
    ):
        # Asked again, because its last holder may have finished the run a moment ago.
        if not run.is_done:
            open_or_create(run.path, config, device)
            with _failure_written_down(run):
                _Session(run, config, options, reporter, device).work(stop, lease)
    return Run(run)


@contextmanager
def _failure_written_down(run: RunDirectory) -> Iterator[None]:
    try:
        yield
    except LeaseLostError:
        raise
    except Exception as error:
        write_failure(run, error)
        raise


def write_failure(run: RunDirectory, error: Exception) -> None:
    """Let the status say why a run failed."""
    is_told = isinstance(error, DivergedError | UserError)
    reason = str(error) if is_told else f"{type(error).__name__}: {error}"
    run.write_status(**run.status() | {"state": "failed", "reason": reason, "updated": time.time()})


class _Session:
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
        self._is_restored = restore_newest(run.checkpoints, self._state)
        forget_rows_after(run, self._state.step if self._is_restored else -1)
        self._first_step = self._state.step
        compiled = device.type == "cuda" if options.compiled is None else options.compiled
        self._steps = training_steps(self._state, self._family, config, compiled)
        self._scores = {name: run.status().get(name, {}) for name in STATUS_SCORES}
        self._started = self._last_checkpoint = self._last_status = time.monotonic()
        self._seconds_evaluating = 0.0
        self._last_timing = (0.0, 0.0)

    def work(self, stop: StopRequest, lease: Lease) -> None:
        """Take steps until the run is done or somebody asks to stop."""
        self._lease = lease
        self._report_status("running", None)
        if not self._is_restored:
            self._evaluate(0)
            self._checkpoint()
        pause = self._options.stop_at_step
        last_step = self._config.num_steps if pause is None else min(self._config.num_steps, pause)
        while self._state.step < last_step and not stop:
            record = next(self._steps)
            stop.listen()
            lease.require_held()
            self._after_step(record)
        if self._state.step == self._config.num_steps and self._vary_context(stop):
            lease.require_held()
            merge_positions(self._run.path)
            # Whoever sees DONE finds the ladder's weights and no others.
            keep_resumable(self._run.checkpoints, self._ladder, 1)
            self._report_status("done", None)
            self._run.mark_done()
            remove_position_shards(self._run.path)
            keep_resumable(self._run.checkpoints, self._ladder, 0)
        else:
            self._checkpoint()
            self._report_status("stopped", None)

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
        # Reading the loss waits for the device, so it is read only when somebody needs it.
        if is_evaluated or is_saved or is_reported or record.loss.device.type == "cpu":
            self._require_finite(record)
        if is_evaluated:
            self._evaluate(record.step, record)
        if is_saved:
            self._checkpoint()
        if is_reported or is_evaluated:
            self._report_status("running", record)

    def _vary_context(self, stop: StopRequest) -> bool:
        """Sweep over contexts as configured; False if somebody asked to stop meanwhile."""
        if not self._config.evaluation.final_sweeps or stop:
            return not stop
        started = time.monotonic()
        options = EvaluateOptions(device=self._options.device)

        def is_stopped() -> bool:
            self._lease.require_held()
            return bool(stop)

        for sweep in self._config.evaluation.final_sweeps:
            evaluate_run(Run(self._run), options, sweep, is_stopped=is_stopped)
        self._seconds_evaluating += time.monotonic() - started
        self._record_timing(self._state.step)
        return not stop

    def _evaluate(self, step: int, record: StepRecord | None = None) -> None:
        started = time.monotonic()
        self._require_finite_weights()
        latest, added = tracked_rows(
            self._config, self._state.model, self._sets, self._state.ivon_posterior(), step
        )
        # It may have taken long enough for somebody else to take over.
        self._lease.require_held()
        self._scores = status_scores(latest)
        record_evaluation(self._run, step, latest + added)
        if step == self._config.num_steps:
            record_calibration(self._run, step, latest + added)
        if record is not None:
            row = {
                "step": step,
                "loss": record.loss.item(),
                "gradient_norm": record.gradient_norm.item(),
                "learning_rate_scale": record.learning_rate_scale,
                **self._spread(),
            }
            append_json_lines(self._run.table("training"), [row])
        self._seconds_evaluating += time.monotonic() - started
        self._record_timing(step)
        self._reporter.evaluated(step, latest)

    def _spread(self) -> dict[str, float]:
        ivon = self._state.optimisers[0]
        return ivon.spread() if isinstance(ivon, IVON) else {}

    def _record_timing(self, step: int) -> None:
        elapsed = time.monotonic() - self._started
        spent = (elapsed - self._seconds_evaluating, self._seconds_evaluating)
        row = {
            "step": step,
            "seconds_training": spent[0] - self._last_timing[0],
            "seconds_evaluating": spent[1] - self._last_timing[1],
        }
        self._last_timing = spent
        append_json_lines(self._run.table("timings"), [row])

    def _checkpoint(self) -> None:
        self._require_finite_weights()
        write_checkpoint(self._run.checkpoints, self._state, self._ladder)
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
        self._run.write_status(**self._status(state, record))
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
