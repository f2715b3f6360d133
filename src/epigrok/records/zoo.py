"""Runs that come with the package: real grokking trajectories to look into at once.

A zoo entry is a run directory whose kept checkpoints hold weights in bfloat16 and nothing to resume
from, with a model card. Used under the name `zoo:NAME`, it is first copied to a directory of the
user's, where evaluations can be kept like those of any run.
"""

import shutil
from pathlib import Path

from epigrok.errors import UserError
from epigrok.records.directory import CONFIG

PREFIX = "zoo:"
CARD = "README.md"
UNPACKED = Path("zoo")
"""Where entries are copied to, below the current directory."""
_SHIPPED = Path(__file__).resolve().parents[1] / "zoo"


def zoo_names() -> list[str]:
    """Names of the runs that come with the package."""
    return sorted(found.parent.name for found in _SHIPPED.glob(f"*/{CONFIG}"))


def zoo_card(name: str) -> str:
    """What an entry is and how it was made."""
    return (_shipped(name) / CARD).read_text()


def unpack_if_zoo(directory: Path | str) -> Path:
    """The path of `directory`; for `zoo:NAME`, that of a copy, which is made now or was before."""
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


def _shipped(name: str) -> Path:
    if name not in zoo_names():
        known = ", ".join(zoo_names()) or "none"
        raise UserError(f"no run named {name!r} comes with the package; there are: {known}")
    return _SHIPPED / name
