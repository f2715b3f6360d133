"""Settings that several runs of the suite share."""

from functools import partial
from typing import Any

from benchmarks.detection.kinds.networks import MLP, Transformer
from benchmarks.detection.training import Role, Spec, Truth

TABLE_MLP = partial(MLP, widths=(192, 64), embedding=48)
TABLE_TRANSFORMER = partial(Transformer, width=64, num_layers=1)
SMALL_MLP = partial(MLP, widths=(128, 64))


def adamw(lr: float = 2e-3, decay: float = 1.0) -> dict[str, Any]:
    return {"optimiser": "adamw", "settings": {"lr": lr, "weight_decay": decay}}


def sgd(lr: float, decay: float, momentum: float = 0.9) -> dict[str, Any]:
    settings = {"lr": lr, "weight_decay": decay, "momentum": momentum}
    return {"optimiser": "sgd", "settings": settings}


def rmsprop(lr: float, decay: float = 0.0) -> dict[str, Any]:
    return {"optimiser": "rmsprop", "settings": {"lr": lr, "weight_decay": decay}}


def muon(lr: float = 0.02, adamw_lr: float = 2e-3, decay: float = 0.1) -> dict[str, Any]:
    settings = {"lr": lr, "adamw_lr": adamw_lr, "weight_decay": decay}
    return {"optimiser": "muon", "settings": settings}


def ivon(decay: float = 1e-3) -> dict[str, Any]:
    settings = {
        "lr": 0.01,
        "ess": 1e6,
        "hess_init": 1e-3,
        "weight_decay": decay,
        "betas": (0.9, 0.999),
        "clip_radius": 1.0,
    }
    return {"optimiser": "ivon", "settings": settings}


def spec(role: Role, truth: Truth, kind: str, name: str, network: Any, *phases: Any) -> Spec:
    return Spec(name=name, kind=kind, role=role, truth=truth, network=network, phases=phases)
