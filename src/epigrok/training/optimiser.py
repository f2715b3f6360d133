"""The optimisers of a run: which parameters each one moves and which it decays."""

import torch
from torch import nn
from torch.optim import Optimizer

from epigrok.config import AdamWConfig, MuonConfig, OptimiserConfig


def build_optimisers(model: nn.Module, config: OptimiserConfig) -> list[Optimizer]:
    """One optimiser, or two where matrices and the rest are treated differently."""
    if isinstance(config, MuonConfig):
        return _muon(model, config)
    return [_adamw(list(model.named_parameters()), config)]


def set_learning_rates(optimisers: list[Optimizer], scale: float) -> None:
    """Set every learning rate to `scale` times its peak."""
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["lr"] = scale * group["peak_lr"]


def _adamw(named: list[tuple[str, nn.Parameter]], config: AdamWConfig) -> Optimizer:
    # Decay pulls weights to zero; a LayerNorm gain belongs at one and a bias anywhere.
    matrices = [parameter for _, parameter in named if parameter.ndim >= 2]
    vectors = [parameter for _, parameter in named if parameter.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay, "peak_lr": config.lr},
        {"params": vectors, "weight_decay": 0.0, "peak_lr": config.lr},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=config.lr,
        betas=config.betas,
        eps=config.eps,
        fused=True,
    )


def _muon(model: nn.Module, config: MuonConfig) -> list[Optimizer]:
    named = list(model.named_parameters())
    # Orthogonalised updates suit maps between hidden spaces, not look-up tables and heads.
    in_blocks = [
        (name, parameter)
        for name, parameter in named
        if parameter.ndim == 2 and name.startswith(("blocks.", "layers."))
    ]
    moved = {name for name, _ in in_blocks}
    rest = [(name, parameter) for name, parameter in named if name not in moved]
    muon = torch.optim.Muon(
        [{"params": [parameter for _, parameter in in_blocks], "peak_lr": config.lr}],
        lr=config.lr,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
    )
    adamw = AdamWConfig(
        lr=config.adamw_lr,
        betas=config.betas,
        eps=config.eps,
        weight_decay=config.adamw_weight_decay,
    )
    return [muon, _adamw(rest, adamw)]
