"""The runs that come with the package."""

import re
from pathlib import Path

import pytest

import epigrok
from epigrok.cli import main
from epigrok.errors import UserError
from epigrok.evaluation import AccuracyBounds
from epigrok.evaluation.fates import end_of_run
from epigrok.records import zoo

SHIPPED = Path(epigrok.__file__).parent / "zoo"
MAX_BYTES = 20e6
FATES = ("id_val", "ood_train", "ood_val")


@pytest.mark.parametrize("name", zoo.zoo_names())
def test_every_entry_is_a_run_through_its_transition(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = epigrok.open_run(f"zoo:{name}")
    assert run.path == Path("zoo") / name
    assert len(run.checkpoints) >= 10
    assert run.is_done
    accuracy = [row["accuracy_final"] for row in run.metrics() if row["split"] == "id_val"]
    assert min(accuracy) < 0.1
    assert max(accuracy) > 0.9
    # Every table that training writes, by context length too.
    for table in ("metrics", "final", "exact", "calibration", "final_positions"):
        assert run.sql(f"select count(*) from {table}").fetchall()[0][0] > 0, table
    card = zoo.zoo_card(name)
    assert re.findall("^## (.+)", card, re.MULTILINE) == ["Data", "Recipe", "Fate", "Licence"]
    fates = {split: end_of_run(run.metrics(), split, AccuracyBounds()) for split in FATES}
    told = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|$", card, re.MULTILINE))
    assert told == {split: fate for split, fate in fates.items() if fate}
    assert f"`epigrok train {run.config.preset} " in card
    weights = run.model(run.newest_step()).state_dict()
    assert all(tensor.isfinite().all() for tensor in weights.values())


def test_all_entries_together_are_small() -> None:
    files = [file for file in SHIPPED.rglob("*") if file.is_file()]
    assert 0 < sum(file.stat().st_size for file in files) < MAX_BYTES
    assert not any(file.suffix == ".pt" for file in files)


def test_a_run_that_is_not_installed_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shipped/large").mkdir(parents=True)
    (tmp_path / "shipped/large/README.md").write_text("# large: a run\n")
    monkeypatch.setattr(zoo, "_SHIPPED", tmp_path / "shipped")
    with pytest.raises(UserError, match=r"zoo:large is too large .*'epigrok\[zoo\]'` adds it"):
        epigrok.open_run("zoo:large")
    assert zoo.zoo_card("large") == "# large: a run\n"
    assert main(["zoo"]) == 0
    assert "only its card is installed; `pip install 'epigrok[zoo]'`" in capsys.readouterr().out


def test_what_was_evaluated_of_an_entry_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = epigrok.open_run("zoo:icl-tiny")
    (run.path / "evaluation.jsonl").write_text("{}\n")
    assert (epigrok.open_run("zoo:icl-tiny").path / "evaluation.jsonl").exists()


def test_a_copy_of_another_version_is_not_taken_for_the_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = zoo.unpacked("icl-tiny") / "config.json"
    config.write_text(config.read_text().replace("2000", "2001"))
    with pytest.raises(UserError, match="zoo/icl-tiny is not zoo:icl-tiny as it comes"):
        epigrok.open_run("zoo:icl-tiny")


def test_a_copy_that_was_cut_short_is_completed(tmp_path: Path) -> None:
    copy = zoo.unpacked("icl-tiny", tmp_path)
    (copy / "config.json").unlink()
    (copy / "metrics.jsonl").write_text("{")
    zoo.unpacked("icl-tiny", tmp_path)
    assert (copy / "metrics.jsonl").read_bytes() == (
        SHIPPED / "icl-tiny/metrics.jsonl"
    ).read_bytes()
    assert epigrok.open_run(copy).config.preset == "icl-tiny"


def test_other_directories_are_left_where_they_are(tmp_path: Path) -> None:
    assert zoo.unpack_if_zoo(tmp_path) == zoo.unpack_if_zoo(str(tmp_path)) == tmp_path


def test_an_unknown_entry_is_named() -> None:
    for ask in (zoo.zoo_card, zoo.unpacked, lambda name: epigrok.open_run(f"zoo:{name}")):
        with pytest.raises(UserError, match=r"no run named 'nothing'.*icl-tiny"):
            ask("nothing")
