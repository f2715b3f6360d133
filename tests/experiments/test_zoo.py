"""The runs that come with the package, and how one is made."""

import json
from pathlib import Path

import pytest
import torch

import epigrok
from epigrok.cli import main
from epigrok.config import preset
from epigrok.config.overrides import with_fields
from epigrok.errors import UserError
from epigrok.experiments import TrainOptions, zoo

SHIPPED = Path(epigrok.__file__).parent / "zoo"
MAX_BYTES = 20e6


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
    assert zoo.zoo_card(name).startswith("# ")
    weights = run.model(run.newest_step()).state_dict()
    assert all(tensor.isfinite().all() for tensor in weights.values())


def test_all_entries_together_are_small() -> None:
    files = [file for file in SHIPPED.rglob("*") if file.is_file()]
    assert 0 < sum(file.stat().st_size for file in files) < MAX_BYTES
    assert not any(file.suffix == ".pt" for file in files)


def test_an_entry_can_be_evaluated_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", "zoo:icl-tiny", "--posteriors", "point", "--device", "cpu"]) == 0
    rows = (tmp_path / "zoo/icl-tiny/evaluation.jsonl").read_text().splitlines()
    accuracy = {row["split"]: row["accuracy_final"] for row in map(json.loads, rows)}
    assert accuracy["ood_val"] > 0.95
    assert main(["zoo"]) == 0
    text = capsys.readouterr().out
    assert "zoo:icl-tiny" in text
    assert "zoo/NAME" in text
    assert main(["zoo", "icl-tiny"]) == 0
    assert "hidden multiplier" in capsys.readouterr().out


def test_an_entry_can_be_drawn_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["figure", "trajectory", "zoo:icl-tiny"]) == 0
    assert (tmp_path / "zoo/icl-tiny/figures/trajectory.pdf").exists()


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


def test_an_unknown_entry_is_named() -> None:
    with pytest.raises(UserError, match=r"no run named 'nothing'.*icl-tiny"):
        epigrok.open_run("zoo:nothing")


def test_packing_keeps_weights_and_tables_and_no_names_of_machines(tmp_path: Path) -> None:
    overrides = {"num_steps": 4, "batch_size": 16, "num_ladder_checkpoints": 2}
    config = with_fields(
        preset("icl-tiny"),
        overrides | {"schedule.warmup_steps": 1, "evaluation.num_rows": 30},
    )
    run = epigrok.train(config, tmp_path / "run")
    zoo.pack(run, tmp_path / "entry", "# a card\n")
    packed = epigrok.open_run(tmp_path / "entry")
    assert packed.config == config
    assert packed.metrics() == run.metrics()
    assert packed.checkpoints == run.checkpoints
    for name, weights in run.model().state_dict().items():
        assert torch.equal(packed.model().state_dict()[name], weights.bfloat16().float())
    text = "".join(file.read_text() for file in (tmp_path / "entry").glob("*.json"))
    assert "host" not in text
    assert "pid" not in text


def test_an_unfinished_run_is_not_packed(tmp_path: Path) -> None:
    run = epigrok.train(preset("icl-tiny"), tmp_path / "run", TrainOptions(stop_at_step=1))
    with pytest.raises(UserError, match="not finished"):
        zoo.pack(run, tmp_path / "entry", "# a card\n")
