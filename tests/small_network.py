"""A small network, its data and IVON's settings, for tests of optimisers."""

import torch
from torch import Tensor, nn

from epigrok.posteriors import IVON
from epigrok.random_streams import normal, stream_key

SETTINGS = {
    "lr": 0.3,
    "ess": 500.0,
    "weight_decay": 0.02,
    "hess_init": 0.4,
    "betas": (0.9, 0.97),
    "clip_radius": 0.6,
}


def network(dtype: torch.dtype = torch.float64) -> nn.Module:
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3)).to(dtype)
    for index, parameter in enumerate(model.parameters()):
        parameter.data = 0.5 * normal(stream_key(1, "net"), tuple(parameter.shape), index).to(dtype)
    return model


def batch(step: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    inputs = normal(stream_key(2, "data"), (20, 5), step).to(dtype)
    return inputs, (inputs[:, :3] * 2).argmax(-1)


def loss_of(model: nn.Module, step: int, rows: slice = slice(None)) -> Tensor:
    inputs, labels = batch(step, next(model.parameters()).dtype)
    return nn.functional.cross_entropy(model(inputs[rows]), labels[rows])


def take_steps(
    model: nn.Module,
    optimiser: IVON,
    steps: range,
    num_samples: int = 1,
    clip_norm: float | None = None,
) -> None:
    for step in steps:
        optimiser.zero_grad()
        for sample in range(num_samples):
            with optimiser.sampled_weights(sample):
                loss_of(model, step).backward()
        if clip_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        optimiser.step()


def state_of(optimiser: IVON) -> Tensor:
    """Mean, momentum and Hessian of all groups in one row."""
    states = optimiser.state_dict()["state"].values()
    return torch.cat([state[name] for state in states for name in ("mean", "momentum", "hessian")])
