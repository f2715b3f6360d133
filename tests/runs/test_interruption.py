"""Signals that ask a run to stop."""

import os
import pty
import signal
import sys
from collections.abc import Iterator

import pytest

from epigrok.runs import interruption
from epigrok.runs.interruption import STOPPING_SIGNALS, stop_on_signal


@pytest.fixture
def hangup() -> Iterator[None]:
    """A terminal that can be closed: under `nohup` these tests would not hear it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hangup")
@pytest.mark.parametrize("number", STOPPING_SIGNALS)
def test_a_signal_is_a_request_and_handlers_come_back(number: signal.Signals) -> None:
    before = {known: signal.getsignal(known) for known in STOPPING_SIGNALS}
    with stop_on_signal() as stop:
        assert not stop
        os.kill(os.getpid(), number)
        assert stop.signal == number
    assert {known: signal.getsignal(known) for known in STOPPING_SIGNALS} == before


@pytest.mark.usefixtures("hangup")
@pytest.mark.parametrize("number", STOPPING_SIGNALS)
def test_a_signal_that_a_library_took_is_taken_back(number: signal.Signals) -> None:
    taken: list[int] = []
    with stop_on_signal() as stop:
        signal.signal(number, lambda number, frame: taken.append(number))
        stop.listen()
        os.kill(os.getpid(), number)
        assert stop
    assert not taken


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Ctrl-C as in a terminal: what a shell puts into the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_a_second_interrupt_acts_as_it_always_did(monkeypatch: pytest.MonkeyPatch) -> None:
    with stop_on_signal() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        # At once, it belongs to the first.
        os.kill(os.getpid(), signal.SIGINT)
        monkeypatch.setattr(interruption, "SECONDS_OF_ONE_REQUEST", 0.0)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert stop


def test_a_run_under_nohup_does_not_hear_its_terminal_close() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_signal() as stop:
            stop.listen()
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop
    finally:
        signal.signal(signal.SIGHUP, before)


SAVES = """
import os, signal, sys
from epigrok.runs.interruption import stop_on_signal
with stop_on_signal() as stop:
    print("ready", flush=True)
    while not stop:
        signal.pause()
    print("printing to a terminal that is gone", flush=True)
    os.write(int(sys.argv[1]), stop.signal.name.encode())
"""


@pytest.mark.usefixtures("hangup")
def test_a_run_whose_terminal_is_closed_can_still_print_and_save() -> None:
    saved, writing = os.pipe()
    os.set_inheritable(writing, True)
    process, terminal = pty.fork()
    if process == 0:
        os.execv(sys.executable, [sys.executable, "-c", SAVES, str(writing)])
    os.close(writing)
    assert b"ready" in os.read(terminal, 100)
    os.close(terminal)
    assert os.read(saved, 100) == b"SIGHUP"
    os.close(saved)
    assert os.waitpid(process, 0)[1] == 0
