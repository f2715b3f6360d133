"""The optimisers of a run: the parameters that each one updates, and those that it decays."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from epigrok.config import AdamWConfig, IVONConfig, MuonConfig, RunConfig, TaskConfig
from epigrok.model import Network
from epigrok.posteriors import IVON
from epigrok.training.stacked_muon import StackedMuon


def build_optimisers(model: Network, config: RunConfig) -> list[Optimizer]:
    """One optimiser, or two if matrices are trained differently from the rest."""
    optim = config.optim
    if isinstance(optim, MuonConfig):
        return _muon(model, optim)
    if isinstance(optim, IVONConfig):
        return [_ivon(model, optim, config.task, config.run_seed)]
    return [_adamw(list(model.named_parameters()), optim)]


def set_learning_rates(optimisers: list[Optimizer], scale: float) -> None:
    """Set every learning rate to `scale` times its peak."""
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(scale * group["peak_lr"])
            else:
                group["lr"] = scale * group["peak_lr"]


def _adamw(named: list[tuple[str, nn.Parameter]], config: AdamWConfig) -> Optimizer:
    return torch.optim.AdamW(
        _decay_groups(named, config.lr, config.weight_decay),
        lr=config.lr,
        betas=config.betas,
        eps=config.eps,
        fused=True,
    )


def _muon(model: Network, config: MuonConfig) -> list[Optimizer]:
    named = list(model.named_parameters())
    hidden = set(model.hidden_matrices())
    in_blocks = [(name, parameter) for name, parameter in named if name in hidden]
    rest = [(name, parameter) for name, parameter in named if name not in hidden]
    is_on_gpu = named[0][1].device.type == "cuda"
    muon = (StackedMuon if is_on_gpu else torch.optim.Muon)(
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


def _ivon(model: nn.Module, config: IVONConfig, task: TaskConfig, run_seed: int) -> Optimizer:
    return IVON(
        _decay_groups(list(model.named_parameters()), config.lr, config.weight_decay),
        lr=config.lr,
        ess=config.effective_sample_size(task.num_training_points),
        hess_init=config.hess_init,
        betas=config.betas,
        clip_radius=config.clip_radius,
        seed=run_seed,
    )


def _decay_groups(
    named: list[tuple[str, nn.Parameter]], lr: float, weight_decay: float
) -> list[dict[str, Any]]:
    # Decay pulls weights to zero; a LayerNorm gain belongs at one and a bias anywhere.
    matrices = [parameter for _, parameter in named if parameter.ndim >= 2]
    vectors = [parameter for _, parameter in named if parameter.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": weight_decay, "peak_lr": lr},
        {"params": vectors, "weight_decay": 0.0, "peak_lr": lr},
    ]
    return [group for group in groups if group["params"]]
