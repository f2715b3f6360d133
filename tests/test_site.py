"""The site builds without a warning, and works from a disk: no request, no overflow, search."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Tab, chromium, find_chromium
from doc_blocks import ROOT

PAGES = ("index", "tutorials/own-model", "results/README", "reference/python/monitor")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_chromium() is None, reason="there is no Chromium here"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sphinx")
    folder = tmp_path_factory.mktemp("site")
    # A process of its own: types are checked at run time in this one, which changes signatures.
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--quiet"]
    subprocess.run([*command, str(ROOT / "docs"), str(folder)], check=True)
    return folder


@pytest.fixture
def tab(tmp_path: Path) -> Iterator[Tab]:
    profile = tmp_path / "profile"
    profile.mkdir()
    with chromium(profile) as connection:
        yield Tab(connection)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_and_asks_nobody(page: str, site: Path, tab: Tab) -> None:
    for width in (1280, 390):
        for scheme in ("light", "dark"):
            tab.open(f"file://{site}/{page}.html", width, scheme)
            assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
            assert not tab.complaints()
            assert all(url.startswith(f"file://{site}") for url in tab.requests())


def test_the_search_finds_pages_from_a_disk(site: Path, tab: Tab) -> None:
    tab.open(f"file://{site}/search.html?q=tolerance", 1280, "light")
    end = time.monotonic() + 30.0
    found = ""
    while "The monitor: has it generalised?" not in found and time.monotonic() < end:
        found = tab.evaluate("document.querySelector('#search-results').innerText")
        time.sleep(0.1)
    assert "The monitor: has it generalised?" in found
    assert not tab.complaints()
