"""Runs that come with the package: real grokking trajectories, ready to look at.

A zoo entry is a run directory with a model card. Its checkpoints hold weights in bfloat16 and
nothing to resume from. The cards of all entries come with the package; the runs of the larger ones
come with an extra. A command that is given `zoo:NAME` first copies the entry to the current
directory, where it keeps evaluations like those of any run.
"""

import shutil
from pathlib import Path

from epigrok.errors import UserError
from epigrok.extras import MissingExtraError, install_command
from epigrok.records.directory import CONFIG

PREFIX = "zoo:"
CARD = "README.md"
EXTRA = "zoo"
"""The extra that brings the larger runs."""
UNPACKED = Path("zoo")
"""Where entries are copied to, below the current directory."""
_SHIPPED = Path(__file__).resolve().parents[1] / "zoo"


def zoo_names() -> list[str]:
    """Names of all entries, installed or not."""
    return sorted(found.parent.name for found in _SHIPPED.glob(f"*/{CARD}"))


def is_installed(name: str) -> bool:
    """Whether the run of an entry is here, not only its card."""
    return (_entry(name) / CONFIG).exists()


def zoo_card(name: str) -> str:
    """What an entry is and how it was made."""
    return (_entry(name) / CARD).read_text()


def unpack_if_zoo(directory: Path | str) -> Path:
    """The path of `directory`; for `zoo:NAME`, the path of a copy, made now or earlier."""
    name = str(directory)
    return unpacked(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else Path(directory)


def unpacked(name: str, where: Path = UNPACKED) -> Path:
    """A copy of an entry below `where`, made now or earlier."""
    source = _entry(name)
    if not is_installed(name):
        raise MissingExtraError(
            f"{PREFIX}{name} is too large for the package itself; {install_command(EXTRA)} adds it"
        )
    copy = where / source.name
    if not (copy / CONFIG).exists():
        # The configuration makes it a run directory, so it comes last.
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns(CONFIG), dirs_exist_ok=True)
        shutil.copyfile(source / CONFIG, copy / CONFIG)
    elif (copy / CONFIG).read_bytes() != (source / CONFIG).read_bytes():
        raise UserError(f"{copy} is not {PREFIX}{name} as it comes with this version; move it away")
    return copy


def _entry(name: str) -> Path:
    if name not in zoo_names():
        known = ", ".join(zoo_names()) or "none"
        raise UserError(f"no run named {name!r} in the zoo; there are: {known}")
    return _SHIPPED / name
