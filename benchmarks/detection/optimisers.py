"""The optimisers of the suite, built by name; a step of any of them looks the same."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from epigrok.posteriors.ivon import IVON

Step = Callable[[Callable[[], Tensor]], Tensor]
"""Takes one step down a loss."""


def stepper(model: nn.Module, name: str, seed: int = 0, **settings: Any) -> tuple[Step, list[Any]]:
    """A function that takes one step, and the optimisers behind it; `settings` are theirs."""
    if name == "ivon":
        optimisers: list[Any] = [IVON(model.parameters(), seed=seed, compiled=False, **settings)]
    elif name == "muon":
        inner = [p for n, p in model.named_parameters() if p.ndim == 2 and n.startswith("layers")]
        chosen = {id(p) for p in inner}
        rest = [p for p in model.parameters() if id(p) not in chosen]
        decay = settings["weight_decay"]
        optimisers = [
            torch.optim.Muon(inner, lr=settings["lr"], weight_decay=decay),
            torch.optim.AdamW(rest, lr=settings["adamw_lr"], weight_decay=decay, foreach=True),
        ]
    elif name == "two rates":
        head = list(model.head.parameters())
        body = [p for n, p in model.named_parameters() if not n.startswith("head")]
        settings = dict(settings)
        groups = [{"params": body, "lr": settings.pop("body_lr")}, {"params": head}]
        optimisers = [torch.optim.AdamW(groups, foreach=True, **settings)]
    elif name == "sgd":
        optimisers = [torch.optim.SGD(model.parameters(), foreach=True, **settings)]
    elif name == "rmsprop":
        optimisers = [torch.optim.RMSprop(model.parameters(), foreach=True, **settings)]
    elif name == "adamw":
        settings = {"betas": (0.9, 0.98), **settings}
        optimisers = [torch.optim.AdamW(model.parameters(), foreach=True, **settings)]
    else:
        raise ValueError(f"no optimiser named {name!r}")

    def step(loss_of: Callable[[], Tensor]) -> Tensor:
        for optimiser in optimisers:
            optimiser.zero_grad()
        sampled = optimisers[0].sampled_weights() if name == "ivon" else nullcontext()
        with sampled:
            loss = loss_of()
            loss.backward()
        for optimiser in optimisers:
            optimiser.step()
        return loss.detach()

    return step, optimisers
