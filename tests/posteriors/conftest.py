"""A trained network to have posteriors of."""

import pytest
from trained_run import Trained, train


@pytest.fixture(scope="session")
def trained() -> Trained:
    """Shared, so nobody may train it further."""
    return train()


@pytest.fixture
def trained_anew() -> Trained:
    """To be changed at will."""
    return train()
