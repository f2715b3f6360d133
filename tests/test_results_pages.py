"""The numbers of the results pages are those of the files beside them."""

import csv
import re
import tarfile
from pathlib import Path

import pytest

from benchmarks import fates, front_figure, prose_numbers, result_tables
from benchmarks.front_figure import EU, LEARNS, NARROWED, SEEN, STATE, STEP, UNSEEN
from benchmarks.verdicts.table import verdicts

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs/results"


@pytest.mark.parametrize("page", result_tables.pages(), ids=lambda page: page.stem)
def test_the_tables_of_a_page_are_made_of_their_data(page: Path) -> None:
    text = page.read_text()
    assert result_tables.updated(text, page.parent) == text, "python -m benchmarks.result_tables"


@pytest.mark.parametrize(
    "page", prose_numbers.PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}"
)
def test_the_numbers_in_the_text_of_a_page_have_a_source(page: Path) -> None:
    assert not prose_numbers.mistakes(page), "python -m benchmarks.prose_numbers"


def test_numbers_in_the_text_are_found_compared_and_missed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Title 7\n\nBy 2026-11-18 seed 3 took `8` steps.\n\n    code 9\n\n"
        "<!-- numbers\ngiven: 0.95\nselect 12, 'up to 1,500 of it'\n-->\n"
        "From 0.95 on **12** of 1,500 and -4, +5 at 6 %.\n\n"
        "<!-- numbers\nselect 2\n-->\nNone.\n\nOf 11 runs\n"
    )
    told = [mistake.partition(":")[0] for mistake in prose_numbers.mistakes(page)]
    assert told == ["5 has no source", "6 has no source", "the data say 2", "11 has no source"]
    assert prose_numbers.counts(page) == (2, 4)


def test_a_wrong_number_is_noticed_and_put_right() -> None:
    page = RESULTS / "icl-medium.md"
    text = page.read_text()
    wrong = text.replace("| 2 | 1.00 | 0.98 | 0.10 | 0.13 |", "| 2 | 1.00 | 0.98 | 0.90 | 0.13 |")
    assert wrong != text
    assert result_tables.updated(wrong, page.parent) == text


def test_a_number_must_say_how_it_is_written() -> None:
    assert result_tables.table_of("select 'a|b' as x, two(0.126) as y, small(1e-5) as z", ROOT) == (
        "| x | y | z |\n| --- | --- | --- |\n| a\\|b | 0.13 | 1.0e-05 |\n"
    )
    with pytest.raises(ValueError, match="say how"):
        result_tables.table_of("select 0.5::double as x", ROOT)
    with pytest.raises(ValueError, match="no rows"):
        result_tables.table_of("select 1 as x where false", ROOT)


@pytest.fixture(scope="module")
def small_grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    with tarfile.open(RESULTS / "paper-small/map-seed-0.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "paper-small"


def test_the_verdicts_are_those_of_the_runs_so_far(small_grid: Path) -> None:
    with (RESULTS / "verdicts.csv").open(newline="") as file:
        assert list(csv.DictReader(file)) == list(verdicts(small_grid))


@pytest.mark.parametrize("tables", fates.SWEEPS, ids=lambda tables: tables.stem.parent.name)
def test_the_signs_of_many_runs_are_judged_from_their_tables(tables: fates.Tables) -> None:
    columns = fates.ends(tables)
    with tables.path("-signs.csv").open(newline="") as file:
        assert list(csv.DictReader(file)) == fates.judged(tables, columns)
    every = fates.draw(columns).axes
    drawn = sum(len(line.get_xdata()) for axes in every for line in axes.lines)
    assert drawn == len(columns["accuracy"]) + 2 * len(every)  # and the ends of dotted lines


def test_every_results_page_begins_with_its_conclusion() -> None:
    for page in RESULTS.glob("*.md"):
        first = re.sub(r"<!--.*?-->\n", "", page.read_text(), flags=re.DOTALL).split("\n\n")[1]
        assert first.startswith("**"), page.name


def table_of_the_front_figure() -> dict[str, list[dict[str, str]]]:
    with (RESULTS / "front/groks-then-loses.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {stage: [row for row in rows if row["stage"] == stage] for stage in (LEARNS, NARROWED)}


def first_step(rows: list[dict[str, str]], column: str, least: float) -> int:
    return next(int(row[STEP]) for row in rows if float(row[column]) >= least)


def test_the_front_figure_shows_what_the_readme_says_of_it() -> None:
    stages = table_of_the_front_figure()
    learns, narrowed = stages[LEARNS], stages[NARROWED]
    fitted, grokked = first_step(learns, SEEN, 0.95), first_step(learns, UNSEEN, 0.95)
    peak = max(learns, key=lambda row: float(row[EU]))
    lost_at = next(int(row[STEP]) for row in narrowed if row[STATE] == "lost")
    said = re.search(r'alt="(.+?)"', (ROOT / "README.md").read_text(), re.DOTALL)
    assert said is not None
    assert re.findall(r"step (\d+)", said[1].replace("\n", " ")) == [
        str(step) for step in (fitted, grokked, lost_at)
    ]
    assert fitted <= int(peak[STEP]) < grokked
    by_250 = [row for row in narrowed if int(row[STEP]) <= 250][-1]
    assert float(by_250[UNSEEN]) < 0.2
    assert {float(row[SEEN]) for row in narrowed} == {1.0}
    rise = max(float(row[EU]) for row in narrowed) / float(narrowed[0][EU])
    assert 6 <= rise < 7


def test_the_front_figure_is_drawn_from_its_table() -> None:
    stages = table_of_the_front_figure()
    figure = front_figure.draw([*stages[LEARNS], *stages[NARROWED]])
    top_left = figure.axes[0]
    assert top_left.lines[1].get_ydata()[-1] == float(stages[LEARNS][-1][UNSEEN])
    assert "lost" in figure.axes[5].texts[0].get_text()


@pytest.mark.slow
def test_the_stages_of_the_front_figure_can_be_trained() -> None:
    rows = list(front_figure.rows(num_steps=100, num_narrow_steps=100))
    assert [(row["stage"], row[STEP]) for row in rows][:4] == [
        (LEARNS, 0),
        (LEARNS, 50),
        (LEARNS, 100),
        (NARROWED, 0),
    ]
    assert rows[2][UNSEEN] == rows[3][UNSEEN]  # the same weights
    assert all(row[EU] > 0 for row in rows)
