"""Commands called in the test's own process, with a limit on their time."""

import io
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from warnings import catch_warnings, filterwarnings

from epigrok.cli import main

SECONDS = 60
"""Within which a command must have ended, on a busy machine."""


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    def give_up(number: int, frame: object) -> None:
        raise TimeoutError(f"no end after {seconds} s")

    previous = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def told(command: list[str]) -> tuple[int, str]:
    """Exit code and everything that a command prints; what escapes from it is an error."""
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output), at_most(SECONDS), catch_warnings():
        # Tests make warnings errors; a command prints its own and goes on.
        filterwarnings("default", category=UserWarning)
        try:
            exit_code = main(command)
        except SystemExit as end:
            exit_code = end.code if isinstance(end.code, int) else 2
        except BaseException:
            raise AssertionError(traceback.format_exc()) from None
    return exit_code, output.getvalue()
