"""The store of the sweep whose numbers can be checked by hand."""

from pathlib import Path

import pytest

from epigrok.tables import SweepStore, open_sweep


@pytest.fixture(scope="package")
def store(grid: Path) -> SweepStore:
    return open_sweep(grid)
