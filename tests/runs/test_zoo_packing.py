"""Making a zoo entry of a run."""

from pathlib import Path

import pytest
import torch
from tiny_run import tiny

import epigrok
from epigrok.errors import UserError
from epigrok.runs import Run
from epigrok.runs.describing import write_identity
from epigrok.runs.zoo_packing import pack


def test_packing_keeps_weights_and_tables_and_no_names_of_machines(
    finished: Run, tmp_path: Path
) -> None:
    pack(finished, tmp_path / "entry", "# a card\n")
    packed = epigrok.open_run(tmp_path / "entry")
    assert packed.is_done
    assert packed.config == finished.config
    assert packed.checkpoints == finished.checkpoints
    for table in ("metrics", "final", "exact", "calibration"):
        assert packed.directory.rows(table) == finished.directory.rows(table) != []
    count = "select count(*) from final_positions"
    assert packed.sql(count).fetchall() == finished.sql(count).fetchall()
    for name, weights in finished.model().state_dict().items():
        assert torch.equal(packed.model().state_dict()[name], weights.bfloat16().float())
    assert (tmp_path / "entry/README.md").read_text() == "# a card\n"
    text = "".join(file.read_text() for file in (tmp_path / "entry").glob("*.json"))
    assert "host" not in text
    assert "pid" not in text


def test_some_checkpoints_are_enough(finished: Run, tmp_path: Path) -> None:
    pack(finished, tmp_path / "entry", "# a card\n", steps=(0, 20))
    assert epigrok.open_run(tmp_path / "entry").checkpoints == [0, 20]


def test_an_unfinished_run_is_not_packed(tmp_path: Path) -> None:
    write_identity(tmp_path, tiny())
    with pytest.raises(UserError, match="is not finished"):
        pack(epigrok.open_run(tmp_path), tmp_path / "entry", "# a card\n")
    assert not (tmp_path / "entry").exists()
