"""Where a run computes."""

import pytest
import torch

from epigrok.errors import UserError
from epigrok.runs.device import choose_device


@pytest.mark.parametrize(("has_gpu", "device"), [(True, "cuda"), (False, "cpu")])
def test_a_gpu_is_taken_where_there_is_one(
    has_gpu: bool, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: has_gpu)
    assert choose_device("auto") == torch.device(device)
    assert choose_device("cpu") == torch.device("cpu")


def test_a_gpu_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UserError, match="'cuda': this machine has no CUDA device; choose cpu or"):
        choose_device("cuda")
