"""Train a run from its configuration to DONE; it can be stopped and resumed at any moment."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from epigrok.config import RunConfig
from epigrok.config.checks import require
from epigrok.errors import UserError
from epigrok.files import make_writable_directory
from epigrok.posteriors import require_posteriors
from epigrok.records.checking import problem_with_finished
from epigrok.records.directory import RunDirectory
from epigrok.records.lease import Lease, LeaseLostError, hold_lease
from epigrok.runs.device import choose_device
from epigrok.runs.interruption import stop_on_signal
from epigrok.runs.progress import Reporter, Silent, reporter_for_person
from epigrok.runs.recording import open_or_create, require_same_config
from epigrok.runs.run import Run
from epigrok.runs.session import DivergedError, Session, TrainOptions
from epigrok.workspace import WorkspaceGoneError

__all__ = ["DivergedError", "TrainOptions", "train", "write_failure"]


def train(
    config: RunConfig,
    run_dir: Path | str,
    options: TrainOptions | None = None,
    reporter: Reporter | None = None,
    progress: bool = False,
) -> Run:
    """Train, or resume, the run of `config` in `run_dir`; a finished run is returned as it is.

    Args:
        config: What to learn and how.
        run_dir: Directory for the results; made if it is missing.
        options: Device, checkpoint interval, early pause.
        reporter: Receives the progress.
        progress: Show a bar, on a terminal or in a notebook, or lines now and then in a log. Not
            with a reporter of your own.

    Returns:
        The run; `run.is_done` says whether it took its last step or was stopped before.
    """
    if not isinstance(config, RunConfig):
        raise UserError(f"a RunConfig is needed, such as preset('classic'), not {config!r}")
    require_posteriors(config)
    options = options or TrainOptions()
    device = choose_device(options.device)
    run = RunDirectory(Path(run_dir))
    if run.is_done:
        require_same_config(run, config)
        problem = problem_with_finished(run)
        require(problem is None, f"{problem}; look at the run with `epigrok check`")
        return Run(run)
    make_writable_directory(run.path)
    if reporter is None:
        step = run.status().get("step", 0)
        reporter = reporter_for_person(config.num_steps, step) if progress else Silent()
    with (
        closing(reporter),
        stop_on_signal() as stop,
        hold_lease(run.path, options.lease_seconds) as lease,
    ):
        # Checked again, because the previous holder may have finished the run a moment ago.
        if not run.is_done:
            open_or_create(run.path, config, device, lease.workspace, options.start_over)
            with _failure_written_down(run, lease):
                Session(run, config, options, reporter, device).work(stop, lease)
    return Run(run)


@contextmanager
def _failure_written_down(run: RunDirectory, lease: Lease) -> Iterator[None]:
    try:
        yield
    except (LeaseLostError, WorkspaceGoneError):
        raise
    except Exception as error:
        # A second error, such as a full disk, must not hide the first.
        with suppress(OSError):
            write_failure(run, error, lease)
        raise


def write_failure(run: RunDirectory, error: Exception, lease: Lease) -> None:
    """Write into the status why a run failed."""
    is_explained = isinstance(error, DivergedError | UserError)
    reason = str(error) if is_explained else f"{type(error).__name__}: {error}"
    status = {"state": "failed", "reason": reason, "updated": time.time()}
    run.write_status(lease.workspace, **run.status() | status)
