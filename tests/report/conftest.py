"""Reports whose figures take no time."""

import pytest
from made_runs import one_figure

from epigrok.report import page


@pytest.fixture(autouse=True)
def _quick_figures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "browser" not in request.keywords:
        monkeypatch.setattr(page, "draw_all", one_figure)
