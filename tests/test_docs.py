"""The code in the documentation runs, and no block of it is left unchecked."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from doc_blocks import (
    PAGES,
    ROOT,
    commands,
    fenced,
    run_page,
    run_section,
    sections,
    sections_with_code,
)
from made_runs import one_figure
from table_files import append_rows

from epigrok.cli import main
from epigrok.evaluation.schema import TABLES
from epigrok.sweeps.description import Sweep, prepare, sweep_from_json
from epigrok.sweeps.shipped import find_sweep
from epigrok.tables import open_sweep

DOCS = ROOT / "docs"
IVON = DOCS / "ivon-in-your-loop.md"
TUTORIALS = DOCS / "tutorials"
RUN_BY = {
    "README.md": "test_readme.py",
    "docs/figures.md": "test_docs.py",
    "docs/ivon-in-your-loop.md": "test_docs.py",
    "docs/monitor.md": "monitor/test_page.py",
    "docs/sweeps.md": "test_docs.py",
    "docs/tutorials/cluster.md": "test_docs.py",
    "docs/tutorials/laptop.md": "test_docs.py",
    "docs/tutorials/own-model.md": "test_docs.py",
    "docs/tutorials/theory-plots.md": "test_docs.py",
    "docs/what-is-eu.md": "test_docs.py",
    "docs/your-own-model.md": "test_own_model_page.py",
}
"""Page with Python -> the test that runs it."""
CHECKED_BY = {
    "json": {
        "docs/sweeps.md": "sweeps/test_sweep_docs.py",
        "docs/tutorials/cluster.md": "test_docs.py",
    },
    "sql": {
        "docs/sweeps.md": "sweeps/test_sweep_docs.py",
        "docs/uncertainty.md": "sweeps/test_sweep_docs.py",
        "docs/what-is-a-row.md": "test_docs.py",
    },
    "toml": {"docs/sweeps.md": "sweeps/test_sweep_docs.py"},
    "text": {"docs/tutorials/own-model.md": "test_docs.py"},
}
"""Language -> page with such a block -> the test that reads it."""
DIRECTIVES = {"{toctree}", "{eval-rst}", "{command-reference}"}
"""Blocks that the strict build of the site reads."""


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fill(directory: Path, sweep: Sweep) -> None:
    """Prepare the runs of a sweep, each with a curve of three evaluations."""
    for run in prepare(directory, sweep).values():
        config = run.config()
        for step in (0, config.num_steps // 2, config.num_steps):
            done = step / config.num_steps
            values = {
                "accuracy_final": done,
                "epistemic_final": 1.0 - done,
                "total_final": 2.0 - done,
            }
            keys = [
                {"step": step, "split": split.name, "posterior": posterior, "num_samples": 16}
                for split in config.task.splits
                for posterior in config.evaluation.posteriors
            ]
            append_rows(run.table("metrics"), [{**key, **values} for key in keys])


# Lightning and Transformers warn of their own settings.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize("heading", sections_with_code(IVON))
def test_the_blocks_of_a_section_run(heading: str) -> None:
    run_section(IVON, heading)


def test_the_monitor_of_the_first_tutorial_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    page = TUTORIALS / "own-model.md"
    names = run_page(page)
    ((_, printed),) = (block for block in fenced(page) if block[0] == "text")
    states = re.findall(r"state='(\w+)'", printed)
    told = re.findall(r"state='(\w+)'", capsys.readouterr().out)
    # Where rounding differs, the state between the two may be seen at a look.
    assert [state for state in told if state in states] == states == ["memorising", "generalised"]
    assert names["accuracy"] > 0.98
    assert min(names["ratios"]) < 0.1
    assert names["ratios"][-1] > 0.5
    assert 0 < names["eu"] < 0.1


@pytest.mark.usefixtures("in_folder")
def test_the_plots_show_what_the_theory_tutorial_says() -> None:
    names = run_page(TUTORIALS / "theory-plots.md")
    s, eu, accuracy = names["s"], names["eu"], names["accuracy"]
    first = {which: s[(accuracy[which] > 0.95).argmax()] for which in ("emp", "gen")}
    assert first["emp"] < s[eu.argmax()] < first["gen"]
    assert eu.max() == pytest.approx(np.log(2), abs=1e-3)
    assert names["exact"][-1] > 100 * names["exact"][0]
    np.testing.assert_allclose(names["formula"], names["exact"], rtol=0.2)
    assert Path("theory-plots.png").stat().st_size > 10_000


@pytest.mark.usefixtures("in_folder", "unrendered")
def test_the_laptop_tutorial_works_in_its_order(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epigrok.report.page.draw_all", one_figure)
    page = TUTORIALS / "laptop.md"
    short = ["--num-steps", "4", "--schedule.warmup-steps", "2", "--evaluation.every", "2"]
    short += ["--evaluation.num-samples", "2", "--evaluation.num-final-samples", "2"]
    short += ["--evaluation.num-sequences", "32", "--evaluation.posteriors", "point", "laplace"]
    for _, command, *words in commands(page):
        assert main([command, *words, *short * (command == "train")]) == 0
    assert Path("runs/first/report/index.html").exists()
    assert "ood_val" in capsys.readouterr().out
    names = run_page(page)
    assert len(names["last"]) == len(names["run"].config.task.splits) * 2
    assert {row["step"] for row in names["rows"]} == {0, 2, 4}
    assert names["other"].optim.lr == 0.02


@pytest.mark.usefixtures("in_folder")
def test_the_sweep_of_the_cluster_tutorial_is_described_estimated_and_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = TUTORIALS / "cluster.md"
    ((_, example),) = (block for block in fenced(page) if block[0] == "json")
    Path("grid.json").write_text(example)
    for _, command, *words in commands(page):
        if "--dry-run" in words:
            assert main([command, *words]) == 0
    told = capsys.readouterr().out
    assert "sweep task counts: 12 runs" in told
    assert "steps left: 28,800,000\ndevice-hours: 184.8" in told
    fill(Path("runs/grid"), sweep_from_json(json.loads(example)))
    table = run_page(page)["table"]
    assert len(table.fetchall()) == 6


@pytest.mark.usefixtures("in_folder")
def test_blocks_about_sweeps_run_on_sweeps() -> None:
    fill(Path("runs/smoke"), find_sweep("smoke"))
    assert run_page(DOCS / "figures.md")["drawn"].name == "trajectory"
    grid = Sweep(name="s", methods=("icl-medium-ivon",), axes={"task.num_base_tasks": (8, 64)})
    fill(Path("runs/paper"), grid)
    assert len(run_page(DOCS / "sweeps.md")["sweep"].runs) == 2


def test_uncertainty_is_what_its_page_says() -> None:
    names = run_page(DOCS / "what-is-eu.md")
    assert float(names["disagree"].epistemic) == pytest.approx(np.log(2))
    assert float(names["open_"].aleatoric) == pytest.approx(np.log(2))
    assert float(names["disagree"].aleatoric) == float(names["open_"].epistemic) == 0.0


def test_the_page_on_rows_has_every_table_with_its_key(tmp_path: Path) -> None:
    page = DOCS / "what-is-a-row.md"
    for table in TABLES.values():
        key = ", ".join(f"`{column.name}`" for column in table.key)
        assert f"| `{table.name}` | {key} | {table.meaning} |" in page.read_text()
    fill(tmp_path, find_sweep("smoke"))
    ((_, query),) = (block for block in fenced(page) if block[0] == "sql")
    rows = open_sweep(tmp_path).sql(query).fetchall()
    assert len({row[:2] for row in rows}) == len(rows) == 4 * 3


def test_no_block_is_left_unchecked() -> None:
    unchecked = []
    for page in PAGES:
        name = str(page.relative_to(ROOT))
        for language, _ in fenced(page):
            test = (
                RUN_BY.get(name) if language == "python" else CHECKED_BY.get(language, {}).get(name)
            )
            is_checked = language in DIRECTIVES or (test and (ROOT / "tests" / test).exists())
            # Without a language a block holds commands, which `test_page_commands.py` reads.
            if not is_checked and not (language == "" and commands(page)):
                unchecked.append(f"{name}: a block of {language or 'text'}")
    assert not unchecked


def test_blocks_are_found_and_an_error_names_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\na = 2\n```\n## One\nText\n```python\nb = a / 0\n```\n## Two\nNo code\n"
    )
    assert list(sections(page)) == ["", "One", "Two"]
    assert sections_with_code(page) == ["One"]
    with pytest.raises(ZeroDivisionError) as found:
        run_section(page, "One")
    assert (found.traceback[-1].path, found.traceback[-1].lineno) == (page, 6)
