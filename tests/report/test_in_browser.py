"""The page as Chromium shows it: figures in sight, nothing on the console, nothing asked for."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Tab, chromium, find_chromium
from made_runs import EVIL, change_config
from websockets.sync.client import ClientConnection
from written_runs import write_grid

from epigrok.figures.catalogue import figures
from epigrok.report import write_report
from epigrok.sweeps.description import Sweep, prepare

pytestmark = pytest.mark.browser

WIDTHS = (1280, 390)
SCHEMES = ("light", "dark")

OVERFLOW = "document.documentElement.scrollWidth - window.innerWidth"
SHOWN_FIGURES = """
[...document.querySelectorAll('figure img')].map(image => {
    const box = image.getBoundingClientRect();
    return {
        name: image.closest('figure').id,
        is_loaded: image.complete && image.naturalWidth > 0,
        is_visible: image.checkVisibility(),
        left: box.left, right: box.right, width: box.width, height: box.height,
    };
})
"""
CONTRASTS = """
((elements, property, name) => {
    const luminance = colour => {
        const parts = colour.match(/[\\d.]+/g).slice(0, 3).map(part => part / 255);
        const [r, g, b] = parts.map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = element => {
        const colour = getComputedStyle(element).backgroundColor;
        return colour === 'rgba(0, 0, 0, 0)' ? behind(element.parentElement) : colour;
    };
    return elements.map(element => {
        const lights = [getComputedStyle(element)[property], behind(element)].map(luminance);
        const ratio = (Math.max(...lights) + 0.05) / (Math.min(...lights) + 0.05);
        return [ratio, name(element)];
    });
})
"""
WORDS = """
([...document.querySelectorAll('body *')].filter(element =>
    [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim())),
 'color', element => element.outerHTML.slice(0, 80))
"""
CURVES = """
([...document.querySelectorAll('.panel polyline')], 'stroke',
 element => element.getAttribute('class'))
"""
READABLE = 4.5
"""Contrast that the Web Content Accessibility Guidelines ask for (level AA)."""

DISCERNIBLE = 3.0
"""The same guidelines on lines of graphs."""
PLACE_OF_SECOND_LOOK = """
(() => {
    const look = document.querySelectorAll('.look rect')[1];
    look.scrollIntoView({block: 'center'});
    const box = look.getBoundingClientRect();
    return {x: box.left + box.width / 2, y: box.top + box.height / 2};
})()
"""
SHOWN_NUMBERS = """
[...document.querySelectorAll('.look .numbers')].filter(
    numbers => getComputedStyle(numbers).visibility === 'visible').length
"""


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClientConnection]:
    if find_chromium() is None:
        pytest.skip("browser tests did not run: Chromium is not installed")
    with chromium(tmp_path_factory.mktemp("chromium") / "profile") as opened:
        yield opened


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep that every figure can be drawn from, under names meant to do harm."""
    directory = tmp_path_factory.mktemp("runs") / "sweep"
    runs = write_grid(directory)
    for run in runs:
        if run.config().preset == "icl-paper":
            change_config(run, preset=EVIL)
    failed, damaged, *_ = runs
    (failed.path / "DONE").unlink()
    failed.write_status(state="failed", step=300, reason=EVIL)
    (damaged.path / "config.json").write_text("{")
    prepare(directory, Sweep(name=f"../{EVIL}", methods=("classic",)))
    return write_report(directory)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_figure_is_in_sight_and_nothing_is_asked_for(
    connection: ClientConnection, report: Path, tmp_path: Path, width: int, scheme: str
) -> None:
    tab = Tab(connection)
    tab.open(report.as_uri(), width, scheme)
    tab.screenshot(tmp_path / f"{width}-{scheme}.png")
    assert tab.complaints() == []
    assert tab.requests() == [report.as_uri()]
    assert tab.evaluate(OVERFLOW) <= 0
    shown = tab.evaluate(SHOWN_FIGURES)
    assert [figure["name"] for figure in shown] == list(figures())
    for figure in shown:
        assert figure["is_loaded"]
        assert figure["is_visible"]
        assert figure["left"] >= 0
        assert figure["right"] <= width
        assert figure["width"] > 0.8 * min(width, 600)
        assert figure["height"] > 100


@pytest.mark.parametrize("scheme", SCHEMES)
def test_all_words_stand_out_from_what_is_behind(
    connection: ClientConnection, report: Path, scheme: str
) -> None:
    tab = Tab(connection)
    tab.open(report.as_uri(), 1280, scheme)
    contrasts = tab.evaluate(CONTRASTS.strip() + WORDS.strip())
    assert len(contrasts) > 100
    assert [words for ratio, words in contrasts if ratio < READABLE] == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_all_curves_stand_out_from_what_is_behind(
    connection: ClientConnection, report: Path, scheme: str
) -> None:
    tab = Tab(connection)
    tab.open(report.as_uri(), 1280, scheme)
    contrasts = tab.evaluate(CONTRASTS.strip() + CURVES.strip())
    assert {kind for _, kind in contrasts} == {"accuracy", "ratio", "training", "uncertainty"}
    assert [kind for ratio, kind in contrasts if ratio < DISCERNIBLE] == []


def test_pointing_at_a_curve_shows_its_numbers(connection: ClientConnection, report: Path) -> None:
    tab = Tab(connection)
    tab.open(report.as_uri(), 1280, "light")
    assert tab.evaluate(SHOWN_NUMBERS) == 0
    place = tab.evaluate(PLACE_OF_SECOND_LOOK)
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", **place)
    assert tab.evaluate(SHOWN_NUMBERS) == 1
    assert "accuracy" in tab.evaluate("document.querySelector('.look:hover').textContent")


def test_paper_shows_what_is_folded_on_a_screen(connection: ClientConnection, report: Path) -> None:
    tab = Tab(connection)
    tab.open(report.as_uri(), 1280, "light")
    folded = "[...document.querySelectorAll('details:not([open]) table')].map(t => " \
             "t.checkVisibility())"  # fmt: skip
    assert len(tab.evaluate(folded)) > 2
    assert not any(tab.evaluate(folded))
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert all(tab.evaluate(folded))


def test_the_colour_scheme_is_followed(connection: ClientConnection, report: Path) -> None:
    tab = Tab(connection)
    backgrounds = set()
    for scheme in SCHEMES:
        tab.open(report.as_uri(), 1280, scheme)
        backgrounds.add(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(backgrounds) == len(SCHEMES)


def test_names_meant_to_do_harm_are_only_shown(connection: ClientConnection, report: Path) -> None:
    tab = Tab(connection)
    tab.open(report.as_uri(), 1280, "light")
    assert EVIL in tab.evaluate("document.title")
    assert EVIL in tab.evaluate("document.querySelector('#runs').innerText")
    assert tab.evaluate("document.scripts.length") == 0
    assert tab.evaluate("document.querySelectorAll('[onerror]').length") == 0


def test_the_watch_sees_errors_requests_and_overflow(
    connection: ClientConnection, tmp_path: Path
) -> None:
    page = tmp_path / "bad.html"
    page.write_text(
        "<div style='width: 3000px'>wide</div><img src='http://127.0.0.1:9/pixel.png'>"
        "<figure><img alt='none' src='data:image/png;base64,AAAA'></figure>"
        "<script>console.error('here')</script><script>throw new Error('there')</script>"
    )
    tab = Tab(connection)
    tab.open(page.as_uri(), 1280, "light")
    assert len(tab.complaints()) >= 2
    assert "http://127.0.0.1:9/pixel.png" in tab.requests()
    assert tab.evaluate(OVERFLOW) > 0
    assert [figure["is_loaded"] for figure in tab.evaluate(SHOWN_FIGURES)] == [False]
