"""Shapes and types in signatures are checked at run time; what tests counted is printed."""

import os
from collections import defaultdict
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

# A second thread gains nothing for models this small, and on a busy machine it costs a lot. Before
# torch is loaded, and for the processes that tests start as well.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from hypothesis import settings
from jaxtyping import install_import_hook

if TYPE_CHECKING:
    from epigrok.workspace import Workspace

# Not on a GPU: there whole steps are compiled, and kernels are not Python. Nor where UNCHECKED says
# so: what fuzzing finds must be what users meet, who have no such checks before the code's own.
if not torch.cuda.is_available() and "UNCHECKED" not in os.environ:
    install_import_hook("epigrok", "run_time_checks.checked")

# Property tests draw the same examples every time.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep whose numbers can be checked by hand; tests only read it."""
    from written_runs import write_grid

    path = tmp_path_factory.mktemp("grid")
    write_grid(path)
    return path


@pytest.fixture
def unrendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write placeholders for images: rendering takes seconds, and is tested with the figures."""
    from matplotlib.figure import Figure

    def placeholder(figure: Figure, image: BytesIO, *, format: str, metadata: object) -> None:
        del metadata
        image.write(f"{figure} as {format}".ljust(200).encode())

    monkeypatch.setattr(Figure, "savefig", placeholder)


@pytest.fixture
def workspace(tmp_path_factory: pytest.TempPathFactory) -> "Workspace":
    """Through which a test changes files; it lies beside them."""
    from epigrok.workspace import Workspace

    return Workspace(tmp_path_factory.mktemp("workspace") / "of-a-test")


@pytest.fixture
def interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run GPU kernels on a CPU, as `make test-kernels` does."""
    from interpreted_kernels import interpret_as_a_hopper

    interpret_as_a_hopper(monkeypatch)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests counted with `record_property`, added up over shards and processes."""
    sums: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "call":
                for name, counts in report.user_properties:
                    for what, number in counts.items():
                        sums[name][what] += number
    for name, counted in sorted(sums.items()):
        told = ", ".join(f"{number:,} {what}" for what, number in counted.items())
        terminalreporter.write_line(f"{name}: {told}")
