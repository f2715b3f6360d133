"""The engine for Ray: every run is a Ray task that starts the usual worker.

Ray's queue dies with the driver, and a repeated task starts from the beginning. The run directory
makes both harmless: a worker resumes its run, and the lease keeps other workers out.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from epigrok.errors import UserError
from epigrok.extras import extra_named
from epigrok.records.directory import RunDirectory
from epigrok.records.lease import is_held
from epigrok.runs.interruption import stop_on_signal
from epigrok.sweeps.engines.local import PoolOptions, RunEnd, run_pool
from epigrok.sweeps.engines.slots import Slot

_SECONDS_BETWEEN_LOOKS = 0.5


@dataclass(frozen=True)
class RayOptions:
    """What to ask of Ray for every run."""

    address: str | None = None
    """Address of a running Ray, such as auto or ray://host:10001; by default start one here."""
    gpus_per_run: float = 0.0
    """Share of a GPU for each run; 0.25 lets four runs share one."""
    cpus_per_run: float = 1.0

    def __post_init__(self) -> None:
        if not (0 <= self.gpus_per_run < inf and 0 < self.cpus_per_run < inf):
            raise UserError(
                "cpus_per_run must be positive and gpus_per_run not negative, got "
                f"{self.cpus_per_run} and {self.gpus_per_run}"
            )


def run_on_ray(
    runs: Sequence[RunDirectory],
    options: PoolOptions,
    settings: RayOptions,
    tell: Callable[[RunEnd], None],
) -> list[RunEnd]:
    """Work on `runs` until each is done or has failed, or a signal asks to stop."""
    if not runs:
        return []
    with extra_named():
        import ray
    is_ours = not ray.is_initialized()
    if is_ours:
        _connect(ray, settings)
    try:
        _require_room(ray, settings)
        task = ray.remote(
            num_cpus=settings.cpus_per_run,
            num_gpus=settings.gpus_per_run,
            max_retries=options.retries,
        )(work_on)
        device = "cuda" if settings.gpus_per_run else "cpu"
        return _drive(ray, partial(task.remote, options, device), list(runs), tell)
    finally:
        if is_ours:
            ray.shutdown()


def work_on(options: PoolOptions, device: str, path: str) -> tuple[str, str]:
    """The Ray task: one run in a pool of one slot, on the GPU that Ray chose."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    visible = {"CUDA_VISIBLE_DEVICES": given if device == "cuda" else ""}
    patient = replace(options, patience_seconds=2 * options.worker.lease_seconds)
    run = RunDirectory(Path(path))
    (end,) = run_pool([run], [Slot(device, visible)], patient, lambda end: None)
    return end.state, end.reason


def _connect(ray: Any, settings: RayOptions) -> None:
    try:
        # Our own Ray listens on this machine only.
        own = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        more = {} if settings.address else own
        ray.init(address=settings.address, log_to_driver=False, logging_level="error", **more)
    except Exception as error:
        raise UserError(f"cannot connect to Ray: {str(error).splitlines()[0]}") from error


def _require_room(ray: Any, settings: RayOptions) -> None:
    """Refuse to queue tasks that could never start."""
    there = ray.cluster_resources()
    for name, asked in {"CPU": settings.cpus_per_run, "GPU": settings.gpus_per_run}.items():
        if asked > there.get(name, 0.0):
            raise UserError(
                f"a run asks for {asked:g} {name}, but this Ray has {there.get(name, 0):g}; "
                "ask for less"
            )


def _drive(
    ray: Any,
    start: Callable[[str], Any],
    waiting: list[RunDirectory],
    tell: Callable[[RunEnd], None],
) -> list[RunEnd]:
    ends: list[RunEnd] = []

    def conclude(end: RunEnd) -> None:
        ends.append(end)
        tell(end)

    tasks: dict[Any, RunDirectory] = {}
    is_stopping = False
    with stop_on_signal() as stop:
        while waiting or tasks:
            if stop and not is_stopping:
                is_stopping = True
                for run in waiting:
                    conclude(RunEnd.at_stop(run))
                waiting.clear()
                for reference in tasks:
                    ray.cancel(reference, force=False)
            # Runs that another process holds wait here, so that they block no place in Ray.
            for run in [run for run in waiting if not is_held(run.path)]:
                waiting.remove(run)
                tasks[start(str(run.path.resolve()))] = run
            if not tasks:
                time.sleep(_SECONDS_BETWEEN_LOOKS)
                continue
            finished, _ = ray.wait(list(tasks), timeout=_SECONDS_BETWEEN_LOOKS)
            for reference in finished:
                run = tasks.pop(reference)
                end = _end(ray, reference, run, is_stopping)
                if end.state == "elsewhere":
                    waiting.append(run)
                else:
                    conclude(end)
    return ends


def _end(ray: Any, reference: Any, run: RunDirectory, is_stopping: bool) -> RunEnd:
    try:
        state, reason = ray.get(reference)
    except (ray.exceptions.TaskCancelledError, KeyboardInterrupt):
        return RunEnd.at_stop(run)
    except ray.exceptions.RayError as error:
        return RunEnd(run, "failed", str(error).strip().splitlines()[0])
    if state == "elsewhere" and is_stopping:
        return RunEnd.at_stop(run)
    return RunEnd(run, state, reason)
