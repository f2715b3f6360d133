"""A run from its configuration to DONE, stoppable and resumable at any moment."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from epigrok.config import RunConfig
from epigrok.errors import UserError
from epigrok.files import make_writable_directory
from epigrok.posteriors import require_posteriors
from epigrok.records.directory import RunDirectory
from epigrok.records.lease import Lease, LeaseLostError, hold_lease
from epigrok.runs.device import choose_device
from epigrok.runs.interruption import stop_on_signal
from epigrok.runs.progress import Reporter, Silent
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
    require_posteriors(config)
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
        # A disk that is full, say, is no reason to hide what went wrong first.
        with suppress(OSError):
            write_failure(run, error, lease)
        raise


def write_failure(run: RunDirectory, error: Exception, lease: Lease) -> None:
    """Let the status say why a run failed."""
    is_told = isinstance(error, DivergedError | UserError)
    reason = str(error) if is_told else f"{type(error).__name__}: {error}"
    status = {"state": "failed", "reason": reason, "updated": time.time()}
    run.write_status(lease.workspace, **run.status() | status)
