"""Several processes on one GPU at the same time, instead of in turns.

Without NVIDIA's multi-process service, kernels of different processes never overlap: four small
runs on one GPU wait for one another. The service comes with the driver. Where it is missing or
already set up, this module does nothing.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

_CONTROL = "nvidia-cuda-mps-control"
_SECONDS_TO_START = 20


@contextmanager
def shared_gpu() -> Iterator[dict[str, str]]:
    """Environment variables that let processes share a GPU, for the duration of a `with` block."""
    control = shutil.which(_CONTROL)
    if control is None or "CUDA_MPS_PIPE_DIRECTORY" in os.environ:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="epigrok-mps-", ignore_cleanup_errors=True) as place:
        variables = {
            "CUDA_MPS_PIPE_DIRECTORY": f"{place}/pipe",
            "CUDA_MPS_LOG_DIRECTORY": f"{place}/log",
        }
        for directory in variables.values():
            os.mkdir(directory)
        if not _tell(control, ["-d"], variables):
            yield {}
            return
        try:
            yield variables
        finally:
            _tell(control, [], variables, "quit\n")


def _tell(control: str, arguments: list[str], variables: dict[str, str], text: str = "") -> bool:
    # The service must see all GPUs; each worker then restricts itself to its own.
    inherited = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"}
    try:
        done = subprocess.run(
            [control, *arguments],
            env=inherited | variables,
            input=text,
            text=True,
            capture_output=True,
            timeout=_SECONDS_TO_START,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
