"""The state of an optimiser survives a file, pickled safely or as safetensors."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from small_network import SETTINGS, loss_of, network, state_of, take_steps
from torch.optim import Optimizer

from epigrok.errors import UserError
from epigrok.posteriors import IVON, load_optimiser, save_optimiser


def pickled(optimiser: Optimizer, path: Path) -> None:
    torch.save(optimiser.state_dict(), path)


def unpickled(optimiser: Optimizer, path: Path) -> None:
    optimiser.load_state_dict(torch.load(path, weights_only=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("save", "load"), [(save_optimiser, load_optimiser), (pickled, unpickled)])
def test_ivon_goes_on_bit_for_bit(
    save: Callable[[Optimizer, Path], None],
    load: Callable[[Optimizer, Path], None],
    dtype: torch.dtype,
    tmp_path: Path,
) -> None:
    model, resumed = network(dtype), network(dtype)
    groups = [{"params": [p]} for p in model.parameters()]
    optimiser = IVON(groups, **{**SETTINGS, "clip_radius": float("inf")})
    take_steps(model, optimiser, range(3))
    save(optimiser, tmp_path / "ivon")
    restored = IVON([{"params": [p]} for p in resumed.parameters()], lr=1.0, ess=1.0)
    load(restored, tmp_path / "ivon")
    for trained, ivon in ((model, optimiser), (resumed, restored)):
        take_steps(trained, ivon, range(3, 6))
    assert torch.equal(state_of(restored), state_of(optimiser))
    assert restored.param_groups[1]["betas"] == SETTINGS["betas"]


def test_adam_goes_on_bit_for_bit(tmp_path: Path) -> None:
    models = network(), network()
    optimisers = [torch.optim.AdamW(model.parameters(), lr=0.01) for model in models]

    def take_step(index: int, step: int) -> None:
        optimisers[index].zero_grad()
        loss_of(models[index], step).backward()
        optimisers[index].step()

    take_step(0, 0)
    save_optimiser(optimisers[0], tmp_path / "adam")
    models[1].load_state_dict(models[0].state_dict())
    load_optimiser(optimisers[1], tmp_path / "adam")
    for index in range(2):
        take_step(index, 1)
    assert all(torch.equal(p, q) for p, q in zip(*(model.parameters() for model in models)))


@pytest.mark.parametrize("content", ["nothing", "text", "weights"])
def test_another_file_is_refused_in_one_sentence(content: str, tmp_path: Path) -> None:
    path = tmp_path / "state"
    if content == "text":
        path.write_text("not safetensors")
    elif content == "weights":
        save_file({"weight": torch.zeros(2)}, path)
    optimiser = IVON(network().parameters(), **SETTINGS)
    with pytest.raises(UserError, match="holds no optimiser's state"):
        load_optimiser(optimiser, path)
