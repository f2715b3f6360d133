"""The page needs nothing beside it, and escapes what runs are called."""

from pathlib import Path

import pytest
from made_runs import EVIL, change_config, make_sweep
from report_pages import Document

from epigrok.cli import main
from epigrok.report import write_report


def test_the_page_needs_nothing_beside_it_and_links_lead_somewhere(tmp_path: Path) -> None:
    make_sweep(tmp_path, generalised=[700], collapsed=[600])
    file = write_report(tmp_path)
    document = Document(file)
    sources = document.attributes("src")
    assert sources
    assert all(source.startswith("data:image/") for source in sources)
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in document.elements}
    assert "url(" not in file.read_text()
    links = document.attributes("href")
    inside = {link.removeprefix("#") for link in links if link.startswith("#")}
    assert inside <= set(document.attributes("id"))
    beside = [link for link in links if not link.startswith("#")]
    assert "figures/a-line.csv" in beside
    assert all((file.parent / link).is_file() for link in beside)


def test_what_runs_are_called_is_text_and_no_path(tmp_path: Path) -> None:
    directory = tmp_path / "outer" / f"sweep {EVIL.replace('/', '')}"
    runs = make_sweep(directory, [700, 800], [600, 600], name=f"../../{EVIL}")
    change_config(runs[0], preset=f"../{EVIL}")
    change_config(runs[1], preset="half a letter: \ud800")
    evil_name = directory / EVIL.replace("/", "")
    runs[0].path.rename(evil_name)
    before = {path for path in tmp_path.rglob("*") if directory / "report" not in path.parents}
    file = write_report(directory)
    after = {path for path in tmp_path.rglob("*") if directory / "report" not in path.parents}
    assert after - before == {directory / "report"}
    document = Document(file)
    assert not [values for _, values in document.elements if "onerror" in values]
    assert {tag for tag, _ in document.elements} & {"script", "frac"} == set()
    assert document.text.count(f"../{EVIL}") >= 3
    assert evil_name.name in document.text


def test_figures_that_could_not_be_drawn_are_named_with_the_reason(tmp_path: Path) -> None:
    make_sweep(tmp_path, [None], [None])
    assert "a-surface nothing varies" in Document(write_report(tmp_path)).text


def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    make_sweep(tmp_path, generalised=[700], collapsed=[600])
    first = write_report(tmp_path).read_bytes()
    assert write_report(tmp_path, tmp_path / "elsewhere").read_bytes() == first


def test_the_command_writes_where_it_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run,) = make_sweep(tmp_path / "runs", generalised=[700], collapsed=[600])
    assert main(["report", str(run.path), "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "out" / "index.html")
    assert (
        "It generalised to unseen inputs at step 700."
        in Document(tmp_path / "out" / "index.html").text
    )


def test_a_directory_without_runs_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert "there are no runs" in capsys.readouterr().err
