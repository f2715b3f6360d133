"""Shapes and types in signatures are checked at run time, in tests only."""

import os
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

# Not on a GPU: there whole steps are compiled, and kernels are not Python.
if not torch.cuda.is_available():
    install_import_hook("epigrok", "run_time_checks.checked")

# Property tests draw the same examples every time.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("repeatable")


@pytest.fixture
def workspace(tmp_path_factory: pytest.TempPathFactory) -> "Workspace":
    """Through which a test changes files; it lies beside them."""
    from epigrok.workspace import Workspace

    return Workspace(tmp_path_factory.mktemp("workspace") / "of-a-test")
