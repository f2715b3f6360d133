"""The page says what was measured, needs nothing beside it, and escapes what runs are called."""

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from made_runs import EVIL, FITTED, PEAK, change_config, make_sweep, one_figure
from written_runs import write_grid

from epigrok.cli import main
from epigrok.experiments.sweep import Sweep, prepare, read_sweep, recorded_sweeps
from epigrok.report import page, write_report


class Document(HTMLParser):
    """The elements of a page, and its text without tags."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(file.read_text())
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data + " "

    def attributes(self, name: str) -> list[str]:
        return [values[name] or "" for _, values in self.elements if name in values]


@pytest.fixture(autouse=True)
def quick_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "draw_all", one_figure)


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open() as lines:
        return list(csv.DictReader(lines))


def test_the_headline_counts_the_runs_that_generalised(tmp_path: Path) -> None:
    make_sweep(tmp_path, generalised=[700, 900, None], collapsed=[500, 1000, None])
    text = Document(write_report(tmp_path)).text
    assert "2 of 3 runs generalised to unseen inputs." in text
    assert "collapsed no later than accuracy arrived: laplace in 1 of 2 transitions." in text


def test_findings_state_medians_and_what_the_uncertainty_did(tmp_path: Path) -> None:
    make_sweep(tmp_path, generalised=[700, 900, 800], collapsed=[500, 600, 700])
    text = Document(write_report(tmp_path)).text
    assert f"generalised, at step 800, {800 - FITTED} steps after the training set" in text
    assert f"peak 0.8 nats at {PEAK}; collapse at 600, 200 before accuracy" in text


def test_findings_count_a_run_once_whatever_posteriors_it_tracks(tmp_path: Path) -> None:
    runs = make_sweep(tmp_path, generalised=[700, None, None], collapsed=[600, None, None])
    for run in runs[1:]:
        metrics = run.table("metrics")
        metrics.write_text(metrics.read_text().replace('"laplace"', '"laplace-exact"'))
    text = Document(write_report(tmp_path)).text
    assert text.count("1 of 3 runs generalised") == 2


def test_a_collapse_without_generalisation_is_told(tmp_path: Path) -> None:
    make_sweep(tmp_path, generalised=[700, None], collapsed=[900, 500])
    text = Document(write_report(tmp_path)).text
    assert "collapse at 700, 200 after accuracy; also in 1 that did not generalise" in text


def test_the_table_of_times_says_how_many_runs_a_median_stands_for(tmp_path: Path) -> None:
    make_sweep(tmp_path, generalised=[700, 900, None], collapsed=[None, None, None])
    text = Document(write_report(tmp_path)).text
    assert f"classic id_val laplace 3 {FITTED} 800 (2 of 3) {PEAK} – 500 (2 of 3) –" in text


def test_csv_files_hold_every_run(tmp_path: Path) -> None:
    runs = make_sweep(tmp_path, generalised=[700, None], collapsed=[600, None])
    folder = write_report(tmp_path).parent
    times = [row for row in rows_of(folder / "grokking-times.csv") if row["split"] == "id_val"]
    assert {row["run_id"]: (row["generalised"], row["lead_of_collapse"]) for row in times} == {
        runs[0].path.name: ("700", "100"),
        runs[1].path.name: ("", ""),
    }
    assert [row["accuracy_final_id_val"] for row in rows_of(folder / "runs.csv")] == ["1.0", "0.0"]


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


def test_a_run_that_failed_or_has_not_begun_is_listed(tmp_path: Path) -> None:
    failed, damaged, _ = make_sweep(tmp_path, [None, None, 800], [None, None, 600])
    (failed.path / "DONE").unlink()
    failed.write_status(state="failed", step=100, reason="the loss is not finite")
    (damaged.path / "config.json").write_text("{")
    prepare(tmp_path, Sweep(name="later", methods=("classic",), seeds=(7,)))
    text = Document(write_report(tmp_path)).text
    assert "2 failed 1 queued 1 done" in text
    assert "failed 100 / 1,000 – – – the loss is not finite" in text
    assert "is not valid JSON" in text
    assert "1 of 2 runs generalised" in text  # a damaged configuration belongs to no setting


def test_a_sweep_that_has_not_begun_is_a_page_too(tmp_path: Path) -> None:
    prepare(tmp_path, Sweep(name="later", methods=("classic",)))
    text = Document(write_report(tmp_path)).text
    assert "No uncertainty measured yet in 1 run." in text
    assert "classic" in text


def test_figures_that_could_not_be_drawn_are_named_with_the_reason(tmp_path: Path) -> None:
    make_sweep(tmp_path, [None], [None])
    assert "a-surface nothing varies" in Document(write_report(tmp_path)).text


def test_configuration_tells_what_varies_from_what_stays(tmp_path: Path) -> None:
    prepare(tmp_path, Sweep(name="s", methods=("classic", "classic-ivon"), seeds=(0, 1)))
    text = Document(write_report(tmp_path)).text
    varying, by_preset, common = re.findall(r"field (.*?)(?=field |Provenance)", text)
    assert "preset classic, classic-ivon run_seed 0, 1" in varying
    assert "optim.kind AdamWConfig IVONConfig" in by_preset
    assert "task.modulus 59" in common
    assert "optim.kind" not in common


def test_a_single_run_is_repeated_from_its_configuration(tmp_path: Path) -> None:
    (run,) = make_sweep(tmp_path, [None], [None])
    text = Document(write_report(run.path)).text
    assert f"cp {run.path.name}/config.json again/ epigrok run again" in text


def test_provenance_counts_runs_that_differ(tmp_path: Path) -> None:
    runs = make_sweep(tmp_path, [None] * 3, [None] * 3)
    for run, commit, device in zip(runs, ("abc", "abc", "def"), ("cpu", "cpu", "H200")):
        process = {"started": "2026-11-15T12:24:02+00:00", "device": device, "versions": {"x": "1"}}
        record = {"commit": commit, "has_uncommitted_changes": device != "cpu"}
        path = run.path / "provenance.json"
        path.write_text(json.dumps({**record, "processes": [process]}))
    text = Document(write_report(tmp_path)).text
    assert "commit abc (2 runs); def with uncommitted changes (1 run)" in text
    assert "device cpu (2 runs); H200 (1 run)" in text
    assert "begun 2026-11-15 12:24 UTC last news 2027-01-15 08:00 UTC" in text


def test_a_sweep_of_ones_own_is_repeated_from_a_file_beside_the_page(tmp_path: Path) -> None:
    directory = tmp_path / "mine"
    make_sweep(directory, [None], [None])
    file = write_report(directory)
    (command,) = re.findall(r"epigrok sweep (\S+) --out mine", Document(file).text)
    assert read_sweep(file.parent / command) == recorded_sweeps(directory)[0]


def test_a_shipped_sweep_is_repeated_by_its_name(tmp_path: Path) -> None:
    from epigrok.experiments.builtin_sweeps import smoke

    prepare(tmp_path / "runs", smoke())
    file = write_report(tmp_path / "runs")
    assert "epigrok sweep smoke --out runs epigrok report runs" in Document(file).text


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
    assert "1 of 1 run generalised" in Document(tmp_path / "out" / "index.html").text


def test_a_directory_without_runs_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert "there are no runs" in capsys.readouterr().err


def test_tables_show_settings_under_the_names_that_figures_use(tmp_path: Path) -> None:
    write_grid(tmp_path)
    text = Document(write_report(tmp_path)).text
    assert "preset training tasks T training fraction split posterior runs" in text
    assert "icl-paper 32 0.3 id_val laplace 3" in text
    assert "task.num_base_tasks 8, 16" in text
