"""`torch.compile` that gives the same kernels in every process."""

from collections.abc import Callable
from typing import Any

import torch


def compiled(function: Callable[..., Any], dynamic: bool | None = None) -> Callable[..., Any]:
    """`function` with its kernels fused.

    By default the compiler measures which of several kernels is the fastest, and its choice decides
    the order of sums; another process, on a busier machine, may choose another kernel.
    """
    # Imported here, because that takes a while; versions before 2.10 lack the setting.
    from torch._inductor import config

    options: dict[str, Any] = {"deterministic": True} if hasattr(config, "deterministic") else {}
    return torch.compile(function, dynamic=dynamic, options=options)


def forget_compiled() -> None:
    """Compile again from here on, as a new process would; the compiler's files make that quick.

    What a process has compiled before decides what it compiles next: kernels for one size or for
    any, and after several variants none at all. A run must not depend on the runs before it.
    """
    torch.compiler.reset()
