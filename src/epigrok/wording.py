"""Numbers and words as people read them: steps, values, durations, lists, text from files.

Where a file holds something other than a number, the text shows it unchanged.
"""

from collections.abc import Sequence
from typing import Any

NONE = "–"


def step_text(step: Any) -> str:
    """A step or a difference of steps: `12,500`."""
    return f"{step:,.0f}".replace("-", "−") if isinstance(step, int | float) else _other(step)


def value_text(value: Any) -> str:
    """A measured value in three digits: `0.000123`."""
    return f"{value:.3g}".replace("-", "−") if isinstance(value, int | float) else _other(value)


def accuracy_text(value: Any) -> str:
    """A share of right answers: `0.998`."""
    return f"{value:.3f}" if isinstance(value, int | float) else _other(value)


def runs_text(number: int) -> str:
    """`1 run`, `2 runs`."""
    return f"{number:,} {'run' if number == 1 else 'runs'}"


def share_text(number: int, total: int) -> str:
    """`3 of 4`."""
    return f"{number:,} of {total:,}"


def listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def duration_text(seconds: float) -> str:
    """`1:05`, `2:00:00`, and from two days on `3d04h`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24}d{hours % 24:02}h"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def printable(text: str) -> str:
    """`text` with spaces for control characters, which pages cannot hold and terminals obey."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def failure_text(error: OSError) -> str:
    """What the system could not do, and with which file: `No space left on device: x/y`."""
    if error.strerror is None:
        return str(error)
    # Of a file that gets another name, the other name is the one that people know.
    file = error.filename if error.filename2 is None else error.filename2
    return error.strerror if file is None else f"{error.strerror}: {file}"


def _other(value: Any) -> str:
    return NONE if value is None else str(value)
