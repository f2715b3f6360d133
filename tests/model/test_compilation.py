"""What the compiler is told."""

from typing import Any

import pytest
import torch

from epigrok.model.compilation import compiled, forget_compiled


def test_the_compiler_does_not_choose_by_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, Any] = {}

    def compile_(function: Any, **options: Any) -> Any:
        told.update(options)
        return function

    monkeypatch.setattr(torch, "compile", compile_)
    assert compiled(abs, dynamic=False) is abs
    assert told == {"dynamic": False, "options": {"deterministic": True}}


def test_what_was_compiled_before_does_not_decide_what_is_compiled_next() -> None:
    shapes: list[Any] = []

    def backend(graph: Any, inputs: list[torch.Tensor]) -> Any:
        shapes.append([value.shape if hasattr(value, "shape") else value for value in inputs])
        return graph.forward

    doubled = torch.compile(lambda values: 2 * values, backend=backend)
    for size in (5, 7, 9):
        doubled(torch.zeros(size))
    assert len(shapes) == 2, "one for the first size, one for any"
    forget_compiled()
    doubled(torch.zeros(9))
    assert shapes[2:] == [[torch.Size([9])]]
