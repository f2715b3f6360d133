"""What the compiler is told."""

from typing import Any

import pytest
import torch

from epigrok.model.compilation import compiled


def test_the_compiler_does_not_choose_by_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, Any] = {}

    def compile_(function: Any, **options: Any) -> Any:
        told.update(options)
        return function

    monkeypatch.setattr(torch, "compile", compile_)
    assert compiled(abs, dynamic=False) is abs
    assert told == {"dynamic": False, "options": {"deterministic": True}}
