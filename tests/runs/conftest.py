"""One finished run that the tests of this folder look into; none of them changes its training."""

import pytest
from tiny_run import tiny

import epigrok
from epigrok.runs import Run


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return epigrok.train(tiny(), tmp_path_factory.mktemp("run"))
