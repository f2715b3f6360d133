"""Signals that ask a run to stop: it finishes its step, saves and leaves."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPPING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2)
"""Ctrl-C, a scheduler's warning before it kills, and the one submitit and Slurm users ask for."""


class StopRequest:
    """Whether a stop was asked for, and by which signal."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    def __bool__(self) -> bool:
        return self.signal is not None


@contextmanager
def stop_on_signal() -> Iterator[StopRequest]:
    """Turn stopping signals into a request; a second Ctrl-C acts as it always did.

    The other signals may come several times, from the scheduler and from an engine that passes
    them on: once asked, they change nothing.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread may install handlers; elsewhere the caller keeps its own.
        yield request
        return
    previous = {number: signal.getsignal(number) for number in STOPPING_SIGNALS}

    def on_signal(number: int, frame: FrameType | None) -> None:
        del frame
        request.signal = signal.Signals(number)
        signal.signal(signal.SIGINT, previous[signal.SIGINT])

    for number in STOPPING_SIGNALS:
        signal.signal(number, on_signal)
    try:
        yield request
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
