"""Slots: how many runs go on at once on one machine, and where each computes.

`cpu*2` is two runs on the CPU, `cuda:0*4` four on the first GPU; a comma joins them.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from epigrok.errors import UserError

_SLOT = re.compile(r"(?P<device>cpu|cuda:(?P<index>\d+))(\*(?P<count>\d+))?")


@dataclass(frozen=True)
class Slot:
    """A place for one run at a time."""

    device: str
    """`cpu` or `cuda`, as the worker is told."""
    environment: Mapping[str, str]
    """Which GPU the worker sees and how many threads it starts."""


def parse_slots(text: str, environment: Mapping[str, str]) -> list[Slot]:
    """The slots that `text` describes, as seen by a process with `environment`."""
    devices = []
    for part in text.replace(" ", "").split(","):
        match = _SLOT.fullmatch(part)
        if match is None or match["count"] == "0":
            raise UserError(
                f"{part!r} is no slot: write cpu*2 for two runs on the CPU, cuda:0*4 for four on "
                "the first GPU, and join several with commas"
            )
        devices += [match["index"]] * int(match["count"] or 1)
    # More threads than cores make every run slower, by far.
    threads = str(max(1, num_cores() // len(devices)))
    shared = {} if "OMP_NUM_THREADS" in environment else {"OMP_NUM_THREADS": threads}
    return [
        Slot(
            "cpu" if index is None else "cuda",
            {**shared, "CUDA_VISIBLE_DEVICES": _visible_device(index, environment)},
        )
        for index in devices
    ]


def default_slots(environment: Mapping[str, str]) -> str:
    """One run on every GPU that is there, or else on every core."""
    count = _num_gpus(environment)
    return ",".join(f"cuda:{index}" for index in range(count)) or f"cpu*{num_cores()}"


def num_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _visible_device(index: str | None, environment: Mapping[str, str]) -> str:
    if index is None:
        return ""
    if "CUDA_VISIBLE_DEVICES" not in environment:
        return index
    allowed = [name for name in environment["CUDA_VISIBLE_DEVICES"].split(",") if name]
    if int(index) >= len(allowed):
        raise UserError(
            f"there is no cuda:{index}: CUDA_VISIBLE_DEVICES leaves {len(allowed)} GPUs"
        )
    return allowed[int(index)]


def _num_gpus(environment: Mapping[str, str]) -> int:
    if "CUDA_VISIBLE_DEVICES" in environment:
        return len([name for name in environment["CUDA_VISIBLE_DEVICES"].split(",") if name])
    try:
        command = ["nvidia-smi", "--list-gpus"]
        listing = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return 0
    return listing.stdout.count("GPU ")
