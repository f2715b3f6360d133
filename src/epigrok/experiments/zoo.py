"""Runs that come with the package: real grokking trajectories to look into at once.

A zoo entry is a run directory whose kept checkpoints hold weights in bfloat16 and nothing to resume
from, with a model card. Used under the name `zoo:NAME`, it is first copied to a directory of the
user's, where evaluations can be kept like those of any run.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epigrok.errors import UserError
from epigrok.experiments.run_files import CONFIG, PARQUET
from epigrok.files import write_json

if TYPE_CHECKING:
    from epigrok.experiments.run import Run

PREFIX = "zoo:"
CARD = "README.md"
UNPACKED = Path("zoo")
"""Where entries are copied to, below the current directory."""
_SHIPPED = Path(__file__).resolve().parents[1] / "zoo"
_KEPT = (CONFIG, "world.safetensors", PARQUET, "DONE")
_PRIVATE = ("host", "pid", "platform")
"""What is nobody else's business."""


def zoo_names() -> list[str]:
    """Names of the runs that come with the package."""
    return sorted(found.parent.name for found in _SHIPPED.glob(f"*/{CONFIG}"))


def zoo_card(name: str) -> str:
    """What an entry is and how it was made."""
    return (_shipped(name) / CARD).read_text()


def located(directory: Path | str) -> Path:
    """Where the runs of `directory` lie; `zoo:NAME` is unpacked first."""
    name = str(directory)
    return unpacked(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else Path(directory)


def unpacked(name: str, where: Path = UNPACKED) -> Path:
    """A copy of an entry below `where`, made now or before."""
    source = _shipped(name)
    copy = where / source.name
    if not (copy / CONFIG).exists():
        # The configuration makes it a run directory, so it comes last.
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns(CONFIG), dirs_exist_ok=True)
        shutil.copyfile(source / CONFIG, copy / CONFIG)
    elif (copy / CONFIG).read_bytes() != (source / CONFIG).read_bytes():
        raise UserError(f"{copy} is not {PREFIX}{name} as it comes with this version; move it away")
    return copy


def pack(run: "Run", destination: Path, card: str, steps: Sequence[int] | None = None) -> None:
    """Make a zoo entry of a finished run, with the weights of `steps` or of all that it kept."""
    # Here and not above: looking into an entry's tables needs no torch.
    import torch
    from safetensors.torch import load_file, save_file

    from epigrok.training.checkpoints import checkpoint_path

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
    (destination / CARD).write_text(card)


def _public(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in _PRIVATE}


def _shipped(name: str) -> Path:
    if name not in zoo_names():
        known = ", ".join(zoo_names()) or "none"
        raise UserError(f"no run named {name!r} comes with the package; there are: {known}")
    return _SHIPPED / name
