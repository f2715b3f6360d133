"""Engines that need a cluster run the smoke sweep and must end in what one machine gets."""

from pathlib import Path

import pytest
from sweep_results import run_sweep


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("reference") / "undisturbed"
    run_sweep(directory, "--slots", "cpu*2")
    return directory
