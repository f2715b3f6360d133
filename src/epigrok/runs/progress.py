"""What a person sees of a run: a bar on a terminal or in a notebook, plain lines elsewhere."""

import sys
import time
from typing import Any, Protocol, runtime_checkable

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from epigrok.evaluation import EvaluationRow
from epigrok.wording import duration_text

SECONDS_BETWEEN_LINES = 10.0
BAR_WIDTH = 30
Look = dict[str, Any]
"""A row of the table `tolerance`."""


@runtime_checkable
class Reporter(Protocol):
    """Receives what happens in a run."""

    def progress(self, step: int, loss: float, steps_per_second: float) -> None:
        """Some steps were taken."""
        ...

    def evaluated(self, step: int, rows: list[EvaluationRow], looks: list[Look]) -> None:
        """The model was evaluated, and the monitor looked at it."""
        ...

    def close(self) -> None:
        """End the report."""
        ...


class Silent:
    """Says nothing."""

    def progress(self, step: int, loss: float, steps_per_second: float) -> None:
        """Ignore."""

    def evaluated(self, step: int, rows: list[EvaluationRow], looks: list[Look]) -> None:
        """Ignore."""

    def close(self) -> None:
        """Ignore."""


class PlainLines:
    """One line every few seconds, for logs and schedulers."""

    def __init__(self, num_steps: int) -> None:
        self._num_steps = num_steps
        self._accuracies = ""
        self._last_line = float("-inf")

    def progress(self, step: int, loss: float, steps_per_second: float) -> None:
        """Print a line unless the previous one is recent; always print the last step."""
        now = time.monotonic()
        if now - self._last_line < SECONDS_BETWEEN_LINES and step < self._num_steps:
            return
        self._last_line = now
        left = time_left_text(self._num_steps - step, steps_per_second)
        print(
            f"step {step}/{self._num_steps}  loss {loss:.4f}  {self._accuracies}"
            f"  {steps_per_second:.1f} steps/s  {left} left",
            flush=True,
        )

    def evaluated(self, step: int, rows: list[EvaluationRow], looks: list[Look]) -> None:
        """Remember accuracies and states for the next line."""
        del step
        self._accuracies = accuracies_text(rows, looks)

    def close(self) -> None:
        """Nothing is held open."""


class LiveLine:
    """A progress bar with loss, accuracies, states of the monitor, speed and time left."""

    def __init__(self, num_steps: int, first_step: int) -> None:
        self._accuracies = ""
        self._progress = Progress(
            TextColumn("{task.completed}/{task.total}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[text]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task: TaskID = self._progress.add_task("", total=num_steps, text="")
        self._progress.update(self._task, completed=first_step)
        self._progress.start()

    def progress(self, step: int, loss: float, steps_per_second: float) -> None:
        """Move the bar."""
        text = f"loss {loss:.4f}  {self._accuracies}  {steps_per_second:.1f} steps/s"
        self._progress.update(self._task, completed=step, text=text)

    def evaluated(self, step: int, rows: list[EvaluationRow], looks: list[Look]) -> None:
        """Show the new accuracies and states from now on."""
        del step
        self._accuracies = accuracies_text(rows, looks)

    def close(self) -> None:
        """Leave the terminal as it was; doing so twice is harmless."""
        if self._progress.live.is_started:
            self._progress.stop()


class NotebookLine:
    """The same below a cell of a notebook, in one line of text that is rewritten."""

    def __init__(self, num_steps: int) -> None:
        # Installed wherever a notebook runs.
        from IPython.display import display

        self._num_steps = num_steps
        self._accuracies = ""
        self._display: Any = display({"text/plain": "starting"}, raw=True, display_id=True)

    def progress(self, step: int, loss: float, steps_per_second: float) -> None:
        """Rewrite the line."""
        num_full = round(BAR_WIDTH * step / self._num_steps)
        left = time_left_text(self._num_steps - step, steps_per_second)
        text = (
            f"{step}/{self._num_steps} {'█' * num_full}{'░' * (BAR_WIDTH - num_full)} "
            f"loss {loss:.4f}  {self._accuracies}  {steps_per_second:.1f} steps/s  {left} left"
        )
        self._display.update({"text/plain": text}, raw=True)

    def evaluated(self, step: int, rows: list[EvaluationRow], looks: list[Look]) -> None:
        """Show the new accuracies and states from now on."""
        del step
        self._accuracies = accuracies_text(rows, looks)

    def close(self) -> None:
        """The last line stays."""


def reporter_for_person(num_steps: int, first_step: int) -> Reporter:
    """A bar where somebody is looking, plain lines otherwise."""
    if _is_notebook():
        return NotebookLine(num_steps)
    return LiveLine(num_steps, first_step) if sys.stderr.isatty() else PlainLines(num_steps)


def _is_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def time_left_text(num_steps: int, steps_per_second: float) -> str:
    """How long the remaining steps will take; a question mark while the speed is unknown."""
    return duration_text(num_steps / steps_per_second) if steps_per_second else "?"


def accuracies_text(rows: list[EvaluationRow], looks: list[Look]) -> str:
    """Accuracy of every split under the first posterior tracked, and its state."""
    states = {look["split"]: look["state"] for look in looks if look.get("state")}
    return "  ".join(
        f"{row.split} {row.summary['accuracy_final']:.3f} {states.get(row.split, '')}".rstrip()
        for row in rows
        if row.posterior == rows[0].posterior
    )
