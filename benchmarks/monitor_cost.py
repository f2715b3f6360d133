"""Time of the monitor with 50 looks, as a share of training time in the same run.

    python benchmarks/monitor_cost.py classic icl-tiny
    python benchmarks/monitor_cost.py icl-medium --device cuda

Confirmations with noise on the whole network are part of it. Evaluation is part of neither time.
On a CPU it is the processor's time; on a GPU that of a clock, and compilation counts for neither.
"""

import json
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import torch

import epigrok
from epigrok.monitor import GrokMonitor
from epigrok.runs import TrainOptions, session
from epigrok.runs.watching import RunMonitor

NUM_LOOKS = 50


class Clock:
    """Adds up the seconds of calls."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.seconds, self.num_calls, self._now = 0.0, 0, now

    def timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same call, on the clock."""

        def on_the_clock(*arguments: Any, **named: Any) -> Any:
            started = self._now()
            result = call(*arguments, **named)
            self.seconds += self._now() - started
            self.num_calls += 1
            return result

        return on_the_clock


def now_on_gpu() -> float:
    """After all that was asked of the GPU."""
    torch.cuda.synchronize()
    return perf_counter()


def seconds_of_training(run: Path, num_steps: int) -> float:
    """All steps at the speed of most: the first interval compiles."""
    rows = [json.loads(line) for line in (run / "timings.jsonl").read_text().splitlines()]
    per_step = [
        after["seconds_training"] / (after["step"] - before["step"])
        for before, after in zip(rows, rows[1:])
    ]
    return num_steps * median(per_step)


def main() -> None:
    """Print a line for each preset."""
    parser = ArgumentParser()
    parser.add_argument("presets", nargs="+")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    chosen = parser.parse_args()
    now = process_time if chosen.device == "cpu" else now_on_gpu
    for name in chosen.presets:
        config = epigrok.preset(name)
        few = replace(
            config.evaluation, every=-(-config.num_steps // NUM_LOOKS), posteriors=("point",)
        )
        looks, confirmations, evaluations = Clock(now), Clock(now), Clock(now)
        plain = RunMonitor.look, GrokMonitor._network_tolerance, session.tracked_evaluation
        RunMonitor.look = looks.timed(plain[0])  # type: ignore[method-assign]
        GrokMonitor._network_tolerance = confirmations.timed(plain[1])  # type: ignore[method-assign]
        session.tracked_evaluation = evaluations.timed(plain[2])
        started = now()
        with TemporaryDirectory() as folder:
            # Without the final evaluation: stopped one step early.
            options = TrainOptions(device=chosen.device, stop_at_step=config.num_steps - 1)
            run = Path(folder) / "run"
            epigrok.train(replace(config, evaluation=few), run, options)
            training = now() - started - looks.seconds - evaluations.seconds
            if chosen.device == "cuda":
                training = seconds_of_training(run, config.num_steps)
        RunMonitor.look, GrokMonitor._network_tolerance = plain[0], plain[1]  # type: ignore[method-assign]
        session.tracked_evaluation = plain[2]
        print(
            f"{name}: {looks.num_calls} looks {looks.seconds:.2f} s, of which "
            f"{confirmations.num_calls} whole-network readings {confirmations.seconds:.2f} s; "
            f"training {training:.1f} s; share {looks.seconds / training:.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
