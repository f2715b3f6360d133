"""The sweep whose numbers can be checked by hand."""

import pytest
from written_runs import write_grid

from epigrok.tables import SweepStore, open_sweep


@pytest.fixture(scope="package")
def store(tmp_path_factory: pytest.TempPathFactory) -> SweepStore:
    path = tmp_path_factory.mktemp("grid")
    write_grid(path)
    return open_sweep(path)
