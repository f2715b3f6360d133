"""Several processes on one GPU at the same time, instead of in turns.

Without NVIDIA's multi-process service, kernels of different processes never overlap: four small
runs on one GPU wait for one another. The service is part of the driver's tools; where it is absent,
or already set up by somebody, nothing is done.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CONTROL = "nvidia-cuda-mps-control"
_SECONDS_TO_START = 20


@contextmanager
def shared_gpu() -> Iterator[dict[str, str]]:
    """Environment variables that let processes share a GPU, for the time of a `with` block."""
    control = shutil.which(_CONTROL)
    if control is None or "CUDA_MPS_PIPE_DIRECTORY" in os.environ:
        yield {}
        return
    # One place per user: a service that outlived a killed driver is found and used again.
    place = Path(tempfile.gettempdir()) / f"epigrok-mps-{os.getuid()}"
    variables = {
        "CUDA_MPS_PIPE_DIRECTORY": str(place / "pipe"),
        "CUDA_MPS_LOG_DIRECTORY": str(place / "log"),
    }
    for directory in variables.values():
        Path(directory).mkdir(mode=0o700, parents=True, exist_ok=True)
    is_started = _tell(control, ["-d"], variables)
    if not is_started and not _tell(control, [], variables, "get_server_list\n"):
        yield {}
        return
    try:
        yield variables
    finally:
        if is_started:
            _tell(control, [], variables, "quit\n")


def _tell(control: str, arguments: list[str], variables: dict[str, str], text: str = "") -> bool:
    try:
        done = subprocess.run(
            [control, *arguments],
            env=os.environ | variables,
            input=text,
            text=True,
            capture_output=True,
            timeout=_SECONDS_TO_START,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
