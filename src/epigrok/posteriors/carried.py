"""The posterior that IVON carries, and the control for it."""

from dataclasses import replace
from math import sqrt
from typing import Any

from epigrok.config import IVONConfig, OptimiserConfig, PosteriorName
from epigrok.config.checks import require
from epigrok.errors import UserError
from epigrok.posteriors.gaussian import DiagonalGaussian
from epigrok.posteriors.kinds import POSTERIOR_SEED, FitRequest, no_argument, register_posterior
from epigrok.posteriors.weight_noise import WeightNoise


def require_ivon(value: Any, name: PosteriorName, optim: OptimiserConfig) -> None:
    """Refuse runs that were trained with another optimiser."""
    del value
    require(
        isinstance(optim, IVONConfig),
        f"posterior {name.text!r} exists only for runs trained with IVON",
    )


@register_posterior("ivon", "inferred", no_argument, require_ivon)
def fit_ivon(request: FitRequest) -> DiagonalGaussian:
    """The posterior that IVON learnt while training."""
    if not isinstance(request.carried, DiagonalGaussian):
        raise UserError(
            "IVON's posterior is not kept with this checkpoint, only its mean; choose another step"
        )
    return replace(request.carried, name=request.name.text, seed=POSTERIOR_SEED)


@register_posterior("ivon-isotropic", "control", no_argument, require_ivon)
def fit_ivon_isotropic(request: FitRequest) -> DiagonalGaussian:
    """Fixed noise of IVON's initial width on every matrix: the control for `ivon`."""
    optim = request.optim
    assert isinstance(optim, IVONConfig)
    ess = optim.effective_sample_size(request.task.num_training_points)
    sigma = 1.0 / sqrt(ess * (optim.hess_init + optim.weight_decay))
    return WeightNoise.isotropic(request.model, sigma, POSTERIOR_SEED, request.name.text)
