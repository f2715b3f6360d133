"""The engine for one machine: a bounded pool of worker processes over slots.

It also runs inside a SLURM allocation. Several pools may work on one directory: a pool waits
for a run that another process holds, and takes it over if the holder dies.
"""

import subprocess
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from typing import Literal

from epigrok.exit_codes import EXIT_HELD, EXIT_LOST, EXIT_STOPPED
from epigrok.records.directory import RunDirectory
from epigrok.records.lease import is_held
from epigrok.runs.interruption import StopRequest, stop_on_signal
from epigrok.sweeps.engines.gpu_sharing import shared_gpu
from epigrok.sweeps.engines.slots import Slot
from epigrok.sweeps.engines.worker import WorkerOptions, reason_of_failure, start_worker

_SECONDS_BETWEEN_POLLS = 0.05
_ELSEWHERE = (EXIT_HELD, EXIT_LOST)
"""Exit codes of a worker whose run another process has."""
_SECONDS_BETWEEN_LOOKS_ELSEWHERE = 1.0


@dataclass(frozen=True)
class RunEnd:
    """The state of a run when the engine has finished with it."""

    run: RunDirectory
    state: Literal["done", "failed", "stopped", "elsewhere"]
    """`stopped`: saved or not started, because the engine was asked to stop; `elsewhere`: held by
    another process for longer than the engine waits."""
    reason: str = ""

    @classmethod
    def at_stop(cls, run: RunDirectory) -> "RunEnd":
        """Of a run that nobody here works on after a stop; another process may have finished it."""
        return cls(run, "done" if run.is_done else "stopped")


@dataclass(frozen=True)
class PoolOptions:
    """How a pool treats its workers."""

    worker: WorkerOptions = field(default_factory=WorkerOptions)
    retries: int = 2
    """How often to restart a run whose worker was killed; a run that failed is not restarted."""
    patience_seconds: float | None = None
    """How long to wait for a run that another process holds; by default for ever."""
    time_limit: float | None = None
    """Seconds after which the pool stops. Judging by the runs that have finished, it starts none
    that would not finish in time."""
    runs_per_worker: int = 1
    """How many runs a worker may do one after the other; only the first has to start up. After a
    failure the others get a new worker."""
    stagger: float = 0.0
    """Least seconds between two starts. Without it, runs of equal length start up, evaluate and end
    all at once, and the device waits."""


def run_pool(
    runs: Iterable[RunDirectory],
    slots: Sequence[Slot],
    options: PoolOptions,
    tell: Callable[[RunEnd], None],
) -> list[RunEnd]:
    """Work on `runs` until each is done or has failed, or a signal asks to stop."""
    with _sharing(slots) as ready_slots:
        pool = _Pool(list(runs), ready_slots, options, tell)
        try:
            with stop_on_signal() as stop:
                return pool.work(stop)
        finally:
            pool.kill_workers()


@contextmanager
def _sharing(slots: Sequence[Slot]) -> Iterator[list[Slot]]:
    """The slots; those that share a GPU are set up to compute at the same time."""
    gpus = [slot.environment["CUDA_VISIBLE_DEVICES"] for slot in slots if slot.device == "cuda"]
    if len(set(gpus)) == len(gpus):
        yield list(slots)
        return
    with shared_gpu() as variables:
        yield [
            replace(slot, environment={**slot.environment, **variables})
            if slot.device == "cuda"
            else slot
            for slot in slots
        ]


@dataclass(frozen=True)
class _Worker:
    slot: Slot
    process: subprocess.Popen[bytes]
    runs: deque[RunDirectory]
    """Those it has not finished; it works on the first."""


class _Pool:
    def __init__(
        self,
        runs: list[RunDirectory],
        slots: Sequence[Slot],
        options: PoolOptions,
        tell: Callable[[RunEnd], None],
    ) -> None:
        self._options, self._tell = options, tell
        self._waiting = deque(runs)
        self._elsewhere: dict[RunDirectory, float] = {}
        """Runs that other processes hold -> when the pool first saw that."""
        self._free, self._num_slots = list(reversed(slots)), len(slots)
        self._workers: list[_Worker] = []
        self._kills: Counter[RunDirectory] = Counter()
        self._ends: list[RunEnd] = []
        self._started = time.time()
        self._last_look = 0.0
        self._begun: dict[RunDirectory, float] = {}
        self._last_start = -inf
        self._seconds_per_step = 0.0
        """Of the run that this pool finished last, start and evaluation included."""

    def work(self, stop: StopRequest) -> list[RunEnd]:
        """Keep every slot busy until nothing is left."""
        is_stopping = False
        while self._waiting or self._workers or self._elsewhere:
            if (stop or self._seconds_left() <= 0.0) and not is_stopping:
                is_stopping = True
                self._stop()
            self._collect(is_stopping)
            self._look_elsewhere()
            while self._free and self._waiting and self._may_start():
                self._begin(self._waiting.popleft())
            if self._workers or self._elsewhere or self._waiting:
                time.sleep(_SECONDS_BETWEEN_POLLS)
        return self._ends

    def kill_workers(self) -> None:
        """Kill the workers that still run, if the engine has to exit at once."""
        for worker in self._workers:
            worker.process.kill()
            worker.process.wait()

    def _begin(self, run: RunDirectory) -> None:
        if self._is_settled(run):
            return
        if is_held(run.path):
            self._elsewhere.setdefault(run, time.time())
            return
        if self._seconds_for(run) > self._seconds_left():
            self._conclude(RunEnd(run, "stopped", "it would not finish in time"))
            return
        slot, runs, most = self._free.pop(), deque([run]), self._most_runs(run)
        while self._waiting and len(runs) < most:
            runs.append(self._waiting.popleft())
        self._begun[run] = self._last_start = time.time()
        try:
            process = start_worker(runs, self._options.worker, slot.device, slot.environment)
        except OSError as error:
            self._free.append(slot)
            self._waiting.extendleft(reversed(list(runs)[1:]))
            self._conclude(RunEnd(run, "failed", f"cannot start its worker: {error}"))
            return
        self._workers.append(_Worker(slot, process, runs))

    def _most_runs(self, run: RunDirectory) -> int:
        """How many runs one worker may take: a fair share, and what finishes in time."""
        fair = (1 + len(self._waiting)) // self._num_slots
        seconds, left = self._seconds_for(run), self._seconds_left()
        in_time = inf if left == inf else left // seconds if seconds else 1
        return int(min(self._options.runs_per_worker, max(1, fair), max(1, in_time)))

    def _may_start(self) -> bool:
        return time.time() - self._last_start >= self._options.stagger

    def _seconds_left(self) -> float:
        limit = self._options.time_limit
        return inf if limit is None else self._started + limit - time.time()

    def _seconds_for(self, run: RunDirectory) -> float:
        """Expected seconds of a run, from the one that finished last; 0 until one has."""
        return self._steps_of(run) * self._seconds_per_step if self._seconds_per_step else 0.0

    @staticmethod
    def _steps_of(run: RunDirectory) -> int:
        return int(run.config_json()["num_steps"])

    def _is_settled(self, run: RunDirectory) -> bool:
        """Whether another process finished the run, or failed at it, since this pool started."""
        if run.is_done:
            self._conclude(RunEnd(run, "done"))
            return True
        status = run.status()
        has_failed = status.get("state") == "failed" and not self._kills[run]
        if has_failed and status.get("updated", 0.0) > self._started and not is_held(run.path):
            self._conclude(RunEnd(run, "failed", str(status.get("reason", "unknown"))))
            return True
        return False

    def _collect(self, is_stopping: bool) -> None:
        for worker in list(self._workers):
            exit_code = worker.process.poll()
            while worker.runs and worker.runs[0].is_done:
                self._note_done(worker.runs.popleft(), worker.runs)
            if exit_code is None:
                continue
            self._workers.remove(worker)
            self._free.append(worker.slot)
            if worker.runs:
                self._note_end(worker.runs.popleft(), exit_code, is_stopping)
            if is_stopping:
                for run in worker.runs:
                    self._conclude(RunEnd(run, "stopped"))
            else:
                self._waiting.extendleft(reversed(worker.runs))

    def _note_done(self, run: RunDirectory, following: Sequence[RunDirectory]) -> None:
        now = time.time()
        self._seconds_per_step = (now - self._begun[run]) / self._steps_of(run)
        if following:
            self._begun[following[0]] = now
        self._conclude(RunEnd(run, "done"))

    def _note_end(self, run: RunDirectory, exit_code: int, is_stopping: bool) -> None:
        """Decide on a run that its worker did not finish."""
        if is_stopping and (exit_code < 0 or exit_code in (EXIT_STOPPED, *_ELSEWHERE)):
            self._conclude(RunEnd(run, "stopped"))
        elif exit_code in _ELSEWHERE:
            self._elsewhere.setdefault(run, time.time())
        elif exit_code < 0 or exit_code == EXIT_STOPPED:
            self._try_again(run, exit_code)
        else:
            self._conclude(RunEnd(run, "failed", reason_of_failure(run, exit_code)))

    def _try_again(self, run: RunDirectory, exit_code: int) -> None:
        self._kills[run] += 1
        if self._kills[run] <= self._options.retries:
            self._waiting.append(run)
        else:
            reason = reason_of_failure(run, exit_code)
            self._conclude(RunEnd(run, "failed", f"{reason}, {self._kills[run]} times"))

    def _look_elsewhere(self) -> None:
        now = time.time()
        if now - self._last_look < _SECONDS_BETWEEN_LOOKS_ELSEWHERE:
            return
        self._last_look = now
        for run, since in list(self._elsewhere.items()):
            patience = self._options.patience_seconds
            if self._is_settled(run):
                del self._elsewhere[run]
            elif not is_held(run.path):
                del self._elsewhere[run]
                self._waiting.append(run)
            elif patience is not None and now - since > patience:
                del self._elsewhere[run]
                self._conclude(RunEnd(run, "elsewhere", "another process is working on it"))

    def _stop(self) -> None:
        """Ask every worker, once, to save and exit; start no more runs."""
        for worker in self._workers:
            worker.process.terminate()
        for run in [*self._waiting, *self._elsewhere]:
            self._conclude(RunEnd.at_stop(run))
        self._waiting.clear()
        self._elsewhere.clear()

    def _conclude(self, end: RunEnd) -> None:
        self._ends.append(end)
        self._tell(end)
