"""Slots: how many runs work at once on one machine, and where each computes.

`cpu*2` is two runs on the CPU, `cpu:4*2` two with four threads each, `cuda:0*4` four on the first
GPU; a comma joins them. A run on the CPU gets one thread by default: another number may change
the last bits of its results, and more threads than cores make every run slower.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from epigrok.errors import UserError

_SLOT = re.compile(r"(cpu(:(?P<threads>[1-9]\d*))?|cuda:(?P<index>\d+))(\*(?P<count>[1-9]\d*))?")


@dataclass(frozen=True)
class Slot:
    """A place for one run at a time."""

    device: str
    """`cpu` or `cuda`, the worker's `--device`."""
    environment: Mapping[str, str]
    """Which GPU the worker sees and how many threads it starts."""


def parse_slots(text: str, environment: Mapping[str, str]) -> list[Slot]:
    """The slots that `text` describes, as seen by a process with `environment`."""
    matches = []
    for part in text.replace(" ", "").split(","):
        match = _SLOT.fullmatch(part)
        if match is None:
            raise UserError(
                f"{part!r} is not a slot; write cpu*2 for two runs on the CPU, cpu:4*2 for two of "
                "4 threads each, cuda:0*4 for four on the first GPU; join several with commas"
            )
        matches += [match] * int(match["count"] or 1)
    return [_slot(match, len(matches), environment) for match in matches]


def default_slots(environment: Mapping[str, str]) -> str:
    """One run on every GPU, or on every core if there is no GPU."""
    count = _num_gpus(environment)
    return ",".join(f"cuda:{index}" for index in range(count)) or f"cpu*{num_cores()}"


def num_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _slot(match: re.Match[str], num_slots: int, environment: Mapping[str, str]) -> Slot:
    is_cpu = match["index"] is None
    if match["threads"]:
        threads = match["threads"]
    else:
        fair = "1" if is_cpu else str(max(1, num_cores() // num_slots))
        threads = environment.get("OMP_NUM_THREADS", fair)
    visible = _visible_device(match["index"], environment)
    return Slot(
        "cpu" if is_cpu else "cuda",
        {"CUDA_VISIBLE_DEVICES": visible, "OMP_NUM_THREADS": threads},
    )


def _visible_device(index: str | None, environment: Mapping[str, str]) -> str:
    if index is None:
        return ""
    if "CUDA_VISIBLE_DEVICES" not in environment:
        return index
    allowed = [name for name in environment["CUDA_VISIBLE_DEVICES"].split(",") if name]
    if int(index) >= len(allowed):
        raise UserError(
            f"there is no cuda:{index}: CUDA_VISIBLE_DEVICES leaves {len(allowed)} GPUs, counted "
            "from 0"
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
