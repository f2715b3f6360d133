"""Signals that ask a run to stop: it finishes its step, saves and exits."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

STOPPING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2, signal.SIGHUP)
"""Ctrl-C, a scheduler's warning before it kills, the signal that submitit uses on SLURM, and a
terminal that is closed."""
SECONDS_OF_ONE_REQUEST = 1.0
"""`timeout -s INT` sends its signal twice at once; both count as one request."""


class StopRequest:
    """Whether a stop was asked for, and by which signal."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._asked_at = 0.0
        self._previous: dict[signal.Signals, Any] = {}
        self._terminals: list[int] = []

    def __bool__(self) -> bool:
        return self.signal is not None

    def listen(self) -> None:
        """Install our handlers again, in case a library replaced them.

        LLVM does so whenever Triton compiles. Its handlers pass a signal on, but for a moment a
        second signal could kill the process.
        """
        for number in self._previous:
            signal.signal(number, self._on_signal)

    def _begin(self) -> None:
        self._previous = {number: signal.getsignal(number) for number in STOPPING_SIGNALS}
        if self._previous[signal.SIGHUP] == signal.SIG_IGN:
            # `nohup` asks for that: the run goes on without its terminal.
            del self._previous[signal.SIGHUP]
        self._terminals = [stream for stream in (1, 2) if os.isatty(stream)]
        self.listen()

    def _end(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        if number == signal.SIGHUP:
            self._print_nowhere()
        if not self:
            self.signal, self._asked_at = signal.Signals(number), time.monotonic()
        elif number == signal.SIGINT and time.monotonic() - self._asked_at > SECONDS_OF_ONE_REQUEST:
            signal.signal(number, self._previous[signal.SIGINT])
            signal.raise_signal(number)

    def _print_nowhere(self) -> None:
        """Printing to a terminal that is gone is an error, which would keep a run from saving."""
        gone = [stream for stream in self._terminals if not os.isatty(stream)]
        if gone:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            for stream in gone:
                os.dup2(nowhere, stream)
            os.close(nowhere)


@contextmanager
def stop_on_signal() -> Iterator[StopRequest]:
    """Turn stopping signals into a request; a second, later Ctrl-C interrupts as usual.

    The other signals may come several times, from the scheduler and from an engine that passes
    them on; repetitions have no effect. Inside another such block it is the same request: a worker
    with several runs is asked once.
    """
    outer = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    if isinstance(outer, StopRequest):
        yield outer
        return
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread may install handlers.
        yield request
        return
    request._begin()
    try:
        yield request
    finally:
        request._end()
