"""CPU time of the monitor with 50 looks, as a share of training time in the same run.

    python benchmarks/monitor_cost.py classic icl-tiny

Confirmations with noise on the whole network are part of it. Evaluation is part of neither time.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import epigrok
from epigrok.monitor import GrokMonitor
from epigrok.runs import TrainOptions, session
from epigrok.runs.watching import RunMonitor

NUM_LOOKS = 50


class Clock:
    """Adds up the CPU seconds of calls."""

    def __init__(self) -> None:
        self.seconds, self.num_calls = 0.0, 0

    def timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same call, on the clock."""

        def on_the_clock(*arguments: Any, **named: Any) -> Any:
            started = process_time()
            result = call(*arguments, **named)
            self.seconds += process_time() - started
            self.num_calls += 1
            return result

        return on_the_clock


def main(names: list[str]) -> None:
    """Print a line for each preset."""
    for name in names:
        config = epigrok.preset(name)
        few = replace(
            config.evaluation, every=-(-config.num_steps // NUM_LOOKS), posteriors=("point",)
        )
        looks, confirmations, evaluations = Clock(), Clock(), Clock()
        plain = RunMonitor.look, GrokMonitor._network_tolerance, session.tracked_evaluation
        RunMonitor.look = looks.timed(plain[0])  # type: ignore[method-assign]
        GrokMonitor._network_tolerance = confirmations.timed(plain[1])  # type: ignore[method-assign]
        session.tracked_evaluation = evaluations.timed(plain[2])
        started = process_time()
        with TemporaryDirectory() as folder:
            # Without the final evaluation: stopped one step early.
            options = TrainOptions(device="cpu", stop_at_step=config.num_steps - 1)
            epigrok.train(replace(config, evaluation=few), Path(folder) / "run", options)
        total = process_time() - started
        RunMonitor.look, GrokMonitor._network_tolerance = plain[0], plain[1]  # type: ignore[method-assign]
        session.tracked_evaluation = plain[2]
        training = total - looks.seconds - evaluations.seconds
        print(
            f"{name}: {looks.num_calls} looks {looks.seconds:.2f} s, of which "
            f"{confirmations.num_calls} whole-network readings {confirmations.seconds:.2f} s; "
            f"training {training:.1f} s; share {looks.seconds / training:.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
