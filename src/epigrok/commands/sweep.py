"""`epigrok sweep NAME|FILE`: run a grid of runs on this machine, on SLURM or on Ray."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Annotated, Literal

import tyro

from epigrok.commands.arguments import parse
from epigrok.commands.sweep_plan import plan
from epigrok.config import RunConfig, flatten, to_json
from epigrok.config.where import Where
from epigrok.errors import UserError
from epigrok.exit_codes import EXIT_DONE, EXIT_FAILED, EXIT_STOPPED
from epigrok.extras import require_installed
from epigrok.registry import loaded_plugins
from epigrok.sweeps.description import prepare, problem_with, runs_of
from epigrok.sweeps.engines.local import PoolOptions, RunEnd, run_pool
from epigrok.sweeps.engines.ray import RayOptions, run_on_ray
from epigrok.sweeps.engines.slots import default_slots, parse_slots
from epigrok.sweeps.engines.slurm import SlurmOptions, submit
from epigrok.sweeps.engines.slurm_queue import wait_for_jobs
from epigrok.sweeps.engines.worker import WorkerOptions
from epigrok.sweeps.shipped import find_sweep
from epigrok.wording import printable, runs_text


@dataclass(frozen=True)
class Piece:
    """One of several equal parts of a list."""

    index: int
    """From 1."""
    number: int

    @classmethod
    def parse(cls, text: str) -> "Piece":
        """Read `2/3`."""
        index, slash, number = text.partition("/")
        is_piece = slash and index.isdecimal() and number.isdecimal()
        if not is_piece or not 1 <= int(index) <= int(number):
            raise UserError(f"{text!r} is no piece; write I/N with 1 <= I <= N, as in 1/3")
        return cls(int(index), int(number))


@dataclass(frozen=True, kw_only=True)
class SweepArguments:
    """Run a sweep: skip the runs that are done, resume the unfinished ones, start the rest."""

    sweep: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME|FILE")]
    """The name of a shipped sweep (see docs/sweeps.md), or a TOML or JSON file that describes
    one, such as `epigrok init` writes."""
    out: Path | None = None
    """Directory of the sweep; each run gets its own directory in it."""
    on: Literal["local", "slurm", "ray"] = "local"
    slots: str | None = None
    """local: how many runs at once and where, such as cpu*2 or cuda:0*4,cuda:1*4; by default one
    run on every GPU, or on every core if there is no GPU."""
    dry_run: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Only list the runs and estimate the work left."""
    steps_per_second: float | None = None
    """Measured speed for the estimate; by default from the timings of runs in the directory."""
    retries: int = 2
    """How often to restart a run whose worker was killed."""
    where: tuple[str, ...] = ()
    """Only runs whose fields have these values, as in preset=icl-small run_seed=0,1."""
    piece: Annotated[str | None, tyro.conf.arg(metavar="I/N")] = None
    """Only every N-th run, from the I-th on: N machines take a piece each."""
    time_limit: float | None = None
    """local: seconds after which to stop; no run is started that would not finish before."""
    runs_per_worker: int = 1
    """local: runs that one process does one after the other, to save the start of the others."""
    stagger: float = 0.0
    """local: least seconds between two starts, so that runs of equal length on one GPU do not start
    up and evaluate all at once."""
    worker: Annotated[WorkerOptions, tyro.conf.arg(name="")] = field(default_factory=WorkerOptions)
    slurm: Annotated[SlurmOptions, tyro.conf.arg(name="")] = field(default_factory=SlurmOptions)
    ray: RayOptions = field(default_factory=RayOptions)

    def __post_init__(self) -> None:
        if self.steps_per_second is not None and not 0 < self.steps_per_second < inf:
            raise UserError(f"--steps-per-second must be positive, got {self.steps_per_second}")
        if self.retries < 0:
            raise UserError(f"--retries must not be negative, got {self.retries}")
        if self.runs_per_worker < 1:
            raise UserError(f"--runs-per-worker must be at least 1, got {self.runs_per_worker}")
        if not 0 <= self.stagger < inf:
            raise UserError(f"--stagger must be finite and not negative, got {self.stagger}")
        if self.time_limit is not None and not self.time_limit > 0:
            raise UserError(f"--time-limit must be positive, got {self.time_limit}")
        if self.time_limit is not None and self.on != "local":
            raise UserError(f"--time-limit is for --on local; {self.on} has limits of its own")


def main(arguments: Sequence[str]) -> int:
    """Run the sweep, or only print what it would do."""
    parsed = parse(SweepArguments, "sweep", arguments)
    sweep = find_sweep(parsed.sweep)
    if parsed.dry_run:
        chosen = _chosen(runs_of(sweep), parsed)
        print("\n".join(plan(sweep, chosen, parsed.out, parsed.steps_per_second)))
        return 0
    if parsed.out is None:
        raise UserError("missing --out DIR, the directory of the sweep")
    is_local = parsed.on == "local"
    slots = parse_slots(parsed.slots or default_slots(os.environ), os.environ) if is_local else []
    if not is_local:
        require_installed(parsed.on)
    chosen = _chosen(runs_of(sweep), parsed)
    runs = {name: run for name, run in prepare(parsed.out, sweep).items() if name in chosen}
    broken = {run: problem for run in runs.values() if (problem := problem_with(run))}
    todo = [run for run in runs.values() if run not in broken and not run.is_done]
    num_done = len(runs) - len(todo) - len(broken)
    print(
        f"sweep {printable(sweep.name)}: {runs_text(len(runs))}, {num_done} done; {parsed.out}",
        flush=True,
    )
    ends = [RunEnd(run, "failed", problem) for run, problem in broken.items()]
    worker = replace(parsed.worker, plugins=tuple(map(str, loaded_plugins())))
    options = PoolOptions(
        worker=worker,
        retries=parsed.retries,
        time_limit=parsed.time_limit,
        runs_per_worker=parsed.runs_per_worker,
        stagger=parsed.stagger,
    )
    tell = _Teller(len(runs), num_done)
    if parsed.on == "slurm":
        submission = submit(parsed.out, todo, options, parsed.slurm)
        print(submission.summary, flush=True)
        if not parsed.slurm.wait:
            return _conclude(ends)
        ends += wait_for_jobs(parsed.out, todo, tell)
    elif parsed.on == "ray":
        ends += run_on_ray(todo, options, parsed.ray, tell)
    else:
        ends += run_pool(todo, slots, options, tell)
    return _conclude(ends)


def _chosen(runs: Mapping[str, RunConfig], parsed: SweepArguments) -> dict[str, RunConfig]:
    """The runs that `--where` and `--piece` leave."""
    flat = [{**flatten(to_json(config)), "run_id": name} for name, config in runs.items()]
    names = [config["run_id"] for config in Where.parse(parsed.where).choose(flat)]
    piece = Piece.parse(parsed.piece) if parsed.piece else Piece(1, 1)
    return {name: runs[name] for name in names[piece.index - 1 :: piece.number]}


class _Teller:
    """Prints a line whenever a run ends."""

    def __init__(self, num_runs: int, num_done: int) -> None:
        self._num_runs, self._num_done = num_runs, num_done

    def __call__(self, end: RunEnd) -> None:
        self._num_done += end.state == "done"
        if end.state != "stopped":
            reason = f": {printable(end.reason)}" if end.reason else ""
            print(
                f"[{self._num_done}/{self._num_runs}] {end.run.path.name} {end.state}{reason}",
                flush=True,
            )


def _conclude(ends: Sequence[RunEnd]) -> int:
    failed = [end for end in ends if end.state == "failed"]
    stopped = [end for end in ends if end.state == "stopped"]
    if failed:
        print(f"{len(failed)} failed:", file=sys.stderr)
        for end in failed:
            print(f"  {end.run.path.name}  {printable(end.reason)}", file=sys.stderr)
            print(f"    log: {end.run.log}", file=sys.stderr)
    if stopped:
        print(f"{len(stopped)} not finished; to resume, run the same command again")
    if failed:
        return EXIT_FAILED
    return EXIT_STOPPED if stopped else EXIT_DONE
