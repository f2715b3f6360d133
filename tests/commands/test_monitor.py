"""`epigrok monitor` on runs that come with the package, trained before it could track tolerance."""

import re
from pathlib import Path

import pytest

from epigrok.cli import main
from epigrok.commands.monitor import what_was_seen
from epigrok.sweeps.description import Sweep, prepare


def test_it_prints_the_states_along_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", "zoo:icl-tiny", "--device", "cpu"]) == 0
    head, first, *_, last, _, _, meaning, _, seen = capsys.readouterr().out.splitlines()
    assert head.split() == ["step", "training", "accuracy", "id_val", "ood_val"]
    # Before the training split is fitted, a ratio says nothing.
    assert re.fullmatch(r" +0 +0\.\d\d  fitting +fitting", first)
    assert re.fullmatch(r" +2,000 +1\.00  \w+ +0\.\d\d  \w+ +0\.\d\d", last)
    assert [head.index("id_val"), head.index("ood_val")] == [
        found.start() for found in re.finditer(r"generalis\w+", last)
    ]
    assert meaning == "ood_val: unseen tasks"
    assert seen.startswith("Without labels, the monitor saw: id_val generalised at step ")


def test_one_sentence_says_what_became_of_every_split() -> None:
    states = {
        "id_val": ["fitting", "memorising", "generalised", "generalised"],
        "ood_train": ["fitting", "generalised", "lost", "lost"],
        "ood_val": ["fitting", "memorising", "memorising", "generalising"],
    }
    watched = {
        split: [{"step": 1000 * k, "state": state} for k, state in enumerate(found)]
        for split, found in states.items()
    }
    assert what_was_seen(watched) == (
        "Without labels, the monitor saw: id_val generalised at step 2,000; ood_train generalised "
        "at step 1,000 and lost at step 2,000; ood_val generalising to the end."
    )
    watched["ood_train"].append({"state": "generalised", "step": 4000})
    assert "lost at step 2,000, then generalised again;" in what_was_seen(watched)
    assert what_was_seen({"id_val": []}) == "Without labels, the monitor saw: nothing of id_val."


def test_what_is_no_run_is_said_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", "nowhere"]) == 2
    assert "nowhere is not a run directory: there is no such directory" in capsys.readouterr().err


def test_a_run_without_checkpoints_is_said_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run,) = prepare(tmp_path, Sweep(name="one", methods=("classic",), seeds=(0,))).values()
    assert main(["monitor", str(run.path), "--device", "cpu"]) == 2
    assert "has no checkpoint yet" in capsys.readouterr().err
