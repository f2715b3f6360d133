"""What the README promises exists, and its code runs."""

import csv
import re

import duckdb
import pytest
from doc_blocks import BLOCK, ROOT, run_page, run_section

README = (ROOT / "README.md").read_text()
TUTORIAL = ROOT / "docs/tutorials/own-model.md"


def test_the_readme_is_short() -> None:
    assert len(README.split()) < 450
    (block,) = BLOCK.findall(README)
    loop = [line for line in block.splitlines() if line and not line.startswith("import")]
    assert len(loop) == 8


def test_its_loop_announces_what_the_network_of_the_tutorial_learns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = run_section(TUTORIAL, "The network")
    names = run_page(ROOT / "README.md", **names)
    (told,) = re.findall(r"`(Event\(.+?)\d+\)`", README)
    assert told in capsys.readouterr().out
    assert names["monitor"].states == {"held out": "generalised"}


def test_it_tells_the_errors_that_the_benchmark_found() -> None:
    with (ROOT / "docs/results/detection/rule.csv").open() as file:
        counts = {(row["kinds"], row["who"]): row for row in csv.DictReader(file)}
    found = counts["unseen by rule 7", "monitor"]
    text = " ".join(README.split())
    assert f"on {found['number of kinds']} kinds" in text
    assert f"announced {found['false alarms']} of {found['not generalised']} sets falsely" in text
    assert f"missed {found['missed']} of {found['generalised']} " in text
    noticed = int(found["lost"]) - int(found["loss missed"])
    assert f"noticed {noticed} of {found['lost']} losses" in text


def test_it_tells_what_the_monitor_said_of_many_seeds() -> None:
    folder = ROOT / "docs/results/icl-small"
    (found,) = duckdb.sql(
        "select count(distinct run_id), min(accuracy_final) filter (t.state = 'generalised') "
        f"from '{folder}/fates-tolerance.parquet' t join '{folder}/fates.parquet' m "
        "using (run_id, step, split) where posterior = 'point'"
    ).fetchall()
    runs, lowest_announced = found
    assert f"On [{runs} transformers" in README
    assert lowest_announced > 0.5


def test_every_link_in_the_readme_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README) + re.findall(r'src="(.+?)"', README)
    assert len(links) > 5
    assert all((ROOT / link).exists() for link in links)


def test_every_folder_of_the_map_exists() -> None:
    text = (ROOT / "docs/map.md").read_text()
    names = re.findall(r"^\| `([\w/.]+)`", text, flags=re.MULTILINE)
    assert len(names) > 8
    package = ROOT / "src" / "epigrok"
    assert all((package / name).exists() for name in names)
    rooms = {path.parent.name for path in package.glob("*/__init__.py")}
    assert {f"{room}/" for room in rooms} <= set(names)


def test_every_function_that_contributors_are_sent_to_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text().partition("Where is")[2]
    rows = re.findall(r"^\| .+\? \| (.+?) \| (.+?) \|$", text, flags=re.MULTILINE)
    assert len(rows) >= 10
    for functions, files in rows:
        sources = [
            (ROOT / "src/epigrok" / name).read_text() for name in re.findall("`(.+?)`", files)
        ]
        for function in re.findall("`(.+?)`", functions):
            name = function.rpartition(".")[2]
            defined = rf"^ *(def|class) {name}\b|^{name} ="
            assert any(re.search(defined, source, re.MULTILINE) for source in sources), function
