"""`epigrok run RUN_DIR`: work on one prepared run directory, as every engine's worker does."""

import traceback
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from epigrok.commands.arguments import parse
from epigrok.errors import UserError
from epigrok.exit_codes import EXIT_DONE, EXIT_FAILED, EXIT_HELD, EXIT_LOST, EXIT_STOPPED
from epigrok.records.directory import RunDirectory
from epigrok.records.lease import LeaseHeldError, LeaseLostError, hold_lease, is_held
from epigrok.runs.device import DeviceName
from epigrok.runs.interruption import stop_on_signal
from epigrok.sweeps.engines.worker import WorkerOptions, opened_log, stop_without_driver
from epigrok.wording import failure_text


@dataclass(frozen=True, kw_only=True)
class RunArguments:
    """Train or resume the runs whose config.json lies in RUN_DIR, as the workers of a sweep do.

    Exit code: 0 done, 130 stopped and saved, 1 failed (see status.json), 75 another process is
    working on it, 76 another process took it over.
    """

    run_dirs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN_DIR")]
    """With a config.json, as `epigrok sweep` prepares it. Several are done one after the other, up
    to the first that does not end well; later ones print into their own logs."""
    device: DeviceName = "auto"
    options: Annotated[WorkerOptions, tyro.conf.arg(name="")] = field(default_factory=WorkerOptions)
    driver_pid: int | None = None
    """Save and exit when this parent process is gone."""


def main(arguments: Sequence[str]) -> int:
    """Work until done, stopped or failed."""
    parsed = parse(RunArguments, "run", arguments)
    if not parsed.run_dirs:
        raise UserError("missing RUN_DIR, the directory of a run")
    first, *others = map(RunDirectory, parsed.run_dirs)
    if parsed.driver_pid is not None:
        stop_without_driver(parsed.driver_pid)
    # Around all: a signal between two runs, or while one is being marked as done, is not lost.
    with stop_on_signal() as stop:
        exit_code = _run(first, parsed)
        for run in others:
            if exit_code != EXIT_DONE:
                break
            if stop:
                return EXIT_STOPPED
            with opened_log(run) as log, redirect_stdout(log), redirect_stderr(log):
                exit_code = _run(run, parsed)
    return exit_code


def _run(run: RunDirectory, parsed: RunArguments) -> int:
    run.config_json()
    # Checked here too, before the lease, because loading torch takes a while.
    if run.is_done:
        print(f"{run.path} is finished; nothing to do")
        return EXIT_DONE
    if is_held(run.path):
        print(f"another process is working on {run.path}")
        return EXIT_HELD
    return _work(run, parsed)


def _work(run: RunDirectory, parsed: RunArguments) -> int:
    from epigrok.runs.progress import PlainLines
    from epigrok.runs.training import DivergedError, TrainOptions, train, write_failure

    try:
        config = run.config()
        options = TrainOptions(
            device=parsed.device,
            checkpoint_seconds=parsed.options.checkpoint_seconds,
            lease_seconds=parsed.options.lease_seconds,
            keeps_weights=parsed.options.keep == "weights",
        )
        result = train(config, run.path, options, PlainLines(config.num_steps))
    except LeaseHeldError:
        return EXIT_HELD
    except (DivergedError, LeaseLostError) as error:
        print(f"epigrok: {error}", flush=True)
        return EXIT_LOST if isinstance(error, LeaseLostError) else EXIT_FAILED
    except Exception as error:
        # Neither is a bug: a mistake in the files, or a disk that is full or out of reach.
        if isinstance(error, UserError | OSError):
            told = failure_text(error) if isinstance(error, OSError) else str(error)
            print(f"epigrok: error: {told}", flush=True)
        else:
            traceback.print_exc()
        # Also for what went wrong before the lease was held, such as a GPU that is not there.
        with suppress(LeaseHeldError, LeaseLostError, OSError), hold_lease(run.path) as lease:
            write_failure(run, error, lease)
        return EXIT_FAILED
    return EXIT_DONE if result.is_done else EXIT_STOPPED
