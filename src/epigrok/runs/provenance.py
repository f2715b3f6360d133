"""Where numbers come from: commit, versions and machines."""

import platform
import socket
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import epigrok
from epigrok.records.description import NeededPlugin

_PACKAGES = ("torch", "numpy", "safetensors", "triton")


def provenance(device: torch.device, plugins: Sequence[NeededPlugin] = ()) -> dict[str, Any]:
    """The provenance of a new run."""
    return {
        **_code(),
        "processes": [this_process(device, plugins)],
    }


def this_process(device: torch.device, plugins: Sequence[NeededPlugin] = ()) -> dict[str, Any]:
    """One process that worked on a run: when, where and with which versions."""
    is_gpu = device.type == "cuda"
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": socket.gethostname(),
        "device": torch.cuda.get_device_name(device) if is_gpu else "cpu",
        "num_threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
        "plugins": {plugin.file: plugin.digest for plugin in plugins},
        # May differ from the first process's, if the run resumed after an update.
        **_code(),
    }


@cache
def _code() -> dict[str, Any]:
    return {
        "epigrok": epigrok.__version__,
        "commit": _git("rev-parse", "HEAD"),
        "has_uncommitted_changes": bool(_git("status", "--porcelain", "--untracked-files=no")),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    """What git says of the source tree this package runs from; None outside a checkout."""
    source = Path(__file__).resolve()
    git = ["git", "-C", str(source.parent)]
    try:
        # An installed copy may lie inside another repository, which does not track it.
        subprocess.run(
            [*git, "ls-files", "--error-unmatch", source.name], capture_output=True, check=True
        )
        result = subprocess.run([*git, *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return result.stdout.strip()
