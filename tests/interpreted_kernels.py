"""Where the kernels run in tests: on a GPU, or with TRITON_INTERPRET=1 on a CPU, in NumPy."""

import os
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

IS_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if IS_INTERPRETED else "cuda"
HAS_TRITON = find_spec("triton") is not None
MARKS = (
    [
        pytest.mark.interpreted,
        pytest.mark.skipif(not HAS_TRITON, reason="Triton is missing: `make test-kernels`"),
        # On a GPU, what lies outside of a mask overflows silently too.
        pytest.mark.filterwarnings("ignore::RuntimeWarning"),
        pytest.mark.usefixtures("interpreter"),
    ]
    if IS_INTERPRETED
    else [
        pytest.mark.gpu,
        pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    ]
)


def interpret_as_a_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the interpreter multiply bfloat16, and give a CPU what kernels ask a GPU for."""
    import triton.language as tl
    from triton.runtime import interpreter
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    products, converted = InterpreterBuilder.create_dot, interpreter._convert_float

    def rounded(values: Any, kind: Any, new_kind: Any, mode: Any) -> Any:
        # To the nearest, as a GPU does; the interpreter would cut the digits off.
        if (kind, new_kind) != (tl.float32, tl.bfloat16):
            return converted(values, kind, new_kind, mode)
        bits = values.view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)

    def wide(values: Any) -> Any:
        # The interpreter keeps bfloat16 as its bits, and would multiply those.
        if values.dtype.scalar != tl.bfloat16:
            return values
        bits = values.data.astype(np.uint32) << 16
        return TensorHandle(bits.view(np.float32), tl.float32)

    def create_dot(self: Any, left: Any, right: Any, *rest: Any) -> Any:
        return products(self, wide(left), wide(right), *rest)

    def wide_product(left: torch.Tensor, right: torch.Tensor, *, out_dtype: Any) -> torch.Tensor:
        return left.to(out_dtype) @ right.to(out_dtype)

    monkeypatch.setattr(interpreter, "_convert_float", rounded)
    monkeypatch.setattr(InterpreterBuilder, "create_dot", create_dot)
    # Hundreds of programs take the interpreter minutes; of a few, each has several tiles.
    for module in ("kernels.norm", "fused_blocks"):
        monkeypatch.setattr(f"epigrok.model.{module}.NUM_SHARES", 7)
    monkeypatch.setattr(torch, "mm", wide_product)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
