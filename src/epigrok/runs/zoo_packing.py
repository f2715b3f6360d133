"""Make a zoo entry of a finished run."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from epigrok.checkpoint_files import DIGESTS, checkpoint_path, write_digests
from epigrok.errors import UserError
from epigrok.files import write_json
from epigrok.records.description import DESCRIPTION
from epigrok.records.directory import CONFIG, PARQUET, RunDirectory
from epigrok.records.zoo import CARD
from epigrok.runs.run import Run

_KEPT = (DESCRIPTION, CONFIG, "world.safetensors", PARQUET)
_PRIVATE = ("host", "pid", "platform")
"""Facts about the machine that no reader of the entry needs."""


def pack(run: Run, destination: Path, card: str, steps: Sequence[int] | None = None) -> None:
    """Make a zoo entry of a finished run, with the weights of `steps` or of all that it kept."""
    if not run.is_done:
        raise UserError(f"{run.path} is not finished")
    destination.mkdir(parents=True)
    for file in [*(run.path / name for name in _KEPT), *run.path.glob("*.jsonl")]:
        shutil.copyfile(file, destination / file.name)
    provenance = run.directory.provenance()
    provenance["processes"] = [_public(process) for process in provenance["processes"]]
    write_json(destination / "provenance.json", provenance)
    write_json(destination / "status.json", _public(run.directory.status()))
    for step in run.checkpoints if steps is None else steps:
        target = checkpoint_path(destination / "checkpoints", step)
        target.mkdir(parents=True)
        for file in checkpoint_path(run.directory.checkpoints, step).glob("*.safetensors"):
            tensors = load_file(file)
            smaller = {name: tensor.to(torch.bfloat16) for name, tensor in tensors.items()}
            save_file(smaller, target / file.name)
        write_digests(target / DIGESTS)
    (destination / CARD).write_text(card)
    RunDirectory(destination).mark_done()


def _public(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in _PRIVATE}
