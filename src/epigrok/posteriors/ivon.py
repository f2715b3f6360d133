r"""IVON: an optimiser that carries a diagonal Gaussian posterior over the weights it trains.

With effective sample size λ and weight decay δ (prior precision λδ), the posterior is N(m, σ²) with
σ² = 1/(λ(h + δ)). Each step draws θ = m + σε, takes the gradient ĝ of the mean loss there, and
updates (the paper's appendix on methods; Shen et al. 2024):

    ĥ = ĝ·(θ - m)/σ²                                      Hessian by reparameterisation
    g ← β₁ g + (1-β₁) ĝ                                   momentum
    h ← β₂ h + (1-β₂) ĥ + ½(1-β₂)² (h - ĥ)²/(h + δ)       the last term keeps h + δ positive
    m ← m - α clip((g/(1-β₁ᵗ) + δm)/(h + δ), ±radius)     with the new h

All state is flat float32 buffers whose addresses never change; parameters and gradients are views
into them, and step and learning rate are tensors, so that a compiled or captured step stays valid.
The noise is a function of (seed, step, sample, position): no generator's state needs saving.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import inf, log
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from epigrok.errors import UserError
from epigrok.model.compilation import compiled as fused
from epigrok.posteriors.flat_parameters import FlatParameters
from epigrok.posteriors.gaussian import DiagonalGaussian, frozen_parameters
from epigrok.random_streams import normal, stream_key

_SAVED = ("mean", "momentum", "hessian", "step")
_QUANTILES = {"q05": 0.05, "q50": 0.5, "q95": 0.95}


class IVON(Optimizer):
    """Improved variational online Newton.

    Use it like any optimiser, with the forward and backward passes inside `sampled_weights`:

        optimiser = IVON(model.parameters(), lr=0.1, ess=len(training_set))
        for batch in batches:
            optimiser.zero_grad()
            with optimiser.sampled_weights():
                loss_function(model(batch)).backward()
            optimiser.step()

    Several such blocks before a step average their samples. Outside of them the parameters are the
    posterior's mean, also after somebody else has set them, as `model.load_state_dict` does. Clip
    or inspect gradients inside the block. Move or convert the model before building the optimiser.

    Args:
        params: Float32 parameters or parameter groups, all of a group on one device.
        lr: Learning rate α, applied after clipping.
        ess: Effective sample size λ.
        weight_decay: δ.
        hess_init: Initial h; with `ess` it decides the initial spread.
        betas: Decay rates (β₁, β₂) of momentum and Hessian.
        clip_radius: Largest step of an element, before the learning rate.
        seed: Of the training noise.
        compiled: Fuse each pass over the buffers with `torch.compile`; by default on a GPU.
    """

    def __init__(  # noqa: PLR0913  (an optimiser has the settings it has)
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float,
        ess: float,
        *,
        weight_decay: float = 1e-4,
        hess_init: float = 1.0,
        betas: tuple[float, float] = (0.9, 0.99999),
        clip_radius: float = inf,
        seed: int = 0,
        compiled: bool | None = None,
    ) -> None:
        self._flats: list[FlatParameters] = []
        settings = {"lr": lr, "ess": ess, "weight_decay": weight_decay, "hess_init": hess_init}
        super().__init__(params, {**settings, "betas": betas, "clip_radius": clip_radius})
        self._seed = seed
        for group in self.param_groups:
            _check_settings(group)
            group["params"] = [p for p in group["params"] if p.requires_grad]
            if not group["params"]:
                raise UserError("a parameter group has nothing to train: all of it is frozen")
            flat = FlatParameters(group["params"])
            self._flats.append(flat)
            group["lr"] = flat.live.new_tensor(group["lr"])
            self.state[group["params"][0]] = {
                "mean": flat.live.clone(),
                "momentum": torch.zeros_like(flat.live),
                "hessian": torch.full_like(flat.live, group["hess_init"]),
                "step": torch.zeros((), dtype=torch.int64, device=flat.live.device),
                "sum_of_gradients": torch.zeros_like(flat.live),
                "sum_of_products": torch.zeros_like(flat.live),
            }
        is_gpu = self._flats[0].live.device.type == "cuda"
        fuse = fused if (is_gpu if compiled is None else compiled) else _unchanged
        self._perturb, self._collect, self._update = (
            fuse(_perturb),
            fuse(_collect),
            fuse(_update),
        )
        self._num_samples_taken = 0
        self._is_sampling = False

    @contextmanager
    def sampled_weights(self) -> Iterator[None]:
        """Set the parameters to a sample; on leaving, keep its gradient and restore the mean.

        After an exception the mean is restored as well and the sample is forgotten.
        """
        if self._is_sampling:
            raise RuntimeError("sampled_weights cannot be entered while it is active")
        self._follow_parameters()
        if self._num_samples_taken:
            # Each sample's gradient is kept by itself.
            self.zero_grad()
        self._is_sampling = True
        try:
            with torch.no_grad():
                for index, (flat, state, group) in enumerate(self._parts()):
                    key = stream_key(self._seed, f"ivon:{index}:{self._num_samples_taken}")
                    self._perturb(flat.live, state, group["ess"], group["weight_decay"], key)
            yield
            with torch.no_grad():
                for flat, state, _ in self._parts():
                    flat.gather_gradients()
                    self._collect(flat.live, flat.gradient, state)
            self._num_samples_taken += 1
        finally:
            for flat, state, _ in self._parts():
                flat.live.copy_(state["mean"])
            self._is_sampling = False

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the posterior from the samples taken since the last step."""
        loss = None
        if closure is not None:
            with torch.enable_grad(), self.sampled_weights():
                loss = closure()
        if self._num_samples_taken == 0:
            raise RuntimeError("step needs a backward pass inside `sampled_weights()` first")
        if self._is_sampling:
            raise RuntimeError("step must be taken after leaving `sampled_weights()`")
        self._follow_parameters()
        for flat, state, group in self._parts():
            beta_1, beta_2 = group["betas"]
            settings = (group["ess"], group["weight_decay"], beta_1, beta_2, group["clip_radius"])
            self._update(flat.live, state, group["lr"], settings, self._num_samples_taken)
        self._num_samples_taken = 0
        return loss

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Refused once the optimiser is built, with a buffer for every group it was given."""
        if self._flats:
            raise UserError(
                "IVON takes no parameter group once it is built; build it with all groups"
            )
        super().add_param_group(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients in place: they are views that must stay attached."""
        del set_to_none
        for flat in self._flats:
            flat.zero_gradients()

    def posterior(self, model: nn.Module, seed: int = 0) -> DiagonalGaussian:
        """The current posterior over `model`'s parameters; further training leaves it alone."""
        deviation_of: dict[int, Tensor] = {}
        for flat, state, group in self._parts():
            sigma = _sigma(state["hessian"], group["ess"], group["weight_decay"])
            deviation_of |= {id(p): d for p, d in zip(group["params"], flat.views_of(sigma))}
        deviation = {
            key: deviation_of[id(weights)]
            for key, weights in model.named_parameters()
            if id(weights) in deviation_of
        }
        if len(deviation) < len(deviation_of):
            raise UserError("IVON's posterior is over the parameters it trains: not of this model")
        return DiagonalGaussian("ivon", frozen_parameters(model), deviation, seed)

    def spread(self) -> dict[str, float]:
        """Quantiles of σ and h over the largest group: how wide and how uneven the posterior is."""
        _, state, group = max(self._parts(), key=lambda part: len(part[0].live))
        # A hundred thousand entries tell the quantiles of millions.
        hessian = state["hessian"][:: max(1, len(state["hessian"]) // 100_000)]
        sigma = _sigma(hessian, group["ess"], group["weight_decay"])
        return {
            f"{name}_{label}": values.quantile(level).item()
            for name, values in (("sigma", sigma), ("hessian", hessian))
            for label, level in _QUANTILES.items()
        }

    def state_dict(self) -> dict[str, Any]:
        """Mean, momentum, Hessian and step of every group, with its settings."""
        if not self._is_sampling:
            self._follow_parameters()
        saved = super().state_dict()
        saved["state"] = {
            key: {name: entry[name].clone() for name in _SAVED}
            for key, entry in saved["state"].items()
        }
        return saved

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Copy a saved state into the buffers in place, so that no address changes."""
        saved_states = list(state_dict["state"].values())
        sizes = [len(saved["mean"]) for saved in saved_states]
        if sizes != [len(flat.live) for flat in self._flats]:
            raise UserError(f"saved IVON state has groups of sizes {sizes}, unlike this optimiser")
        for (flat, state, group), saved, saved_group in zip(
            self._parts(), saved_states, state_dict["param_groups"]
        ):
            flat.require_attached()
            for name in _SAVED:
                state[name].copy_(saved[name])
            # Samples taken since the last step belong to the state that is given up.
            state["sum_of_gradients"].zero_()
            state["sum_of_products"].zero_()
            flat.live.copy_(state["mean"])
            group["lr"].copy_(saved_group["lr"])
            group |= {k: v for k, v in saved_group.items() if k not in ("params", "lr")}
        self._num_samples_taken = 0

    @torch.no_grad()
    def _follow_parameters(self) -> None:
        """Make the mean what the parameters are: between samples, anybody may have set them."""
        for flat, state, _ in self._parts():
            flat.require_attached()
            state["mean"].copy_(flat.live)

    def _parts(self) -> Iterator[tuple[FlatParameters, dict[str, Tensor], dict[str, Any]]]:
        for flat, group in zip(self._flats, self.param_groups):
            yield flat, self.state[group["params"][0]], group


def _sigma(hessian: Tensor, ess: float, weight_decay: float) -> Tensor:
    return torch.rsqrt(ess * (hessian + weight_decay))


def _perturb(
    live: Tensor, state: dict[str, Tensor], ess: float, weight_decay: float, key: int
) -> None:
    noise = normal(key, (live.shape[0],), state["step"], live.device)
    live.copy_(state["mean"] + _sigma(state["hessian"], ess, weight_decay) * noise)


def _collect(live: Tensor, gradient: Tensor, state: dict[str, Tensor]) -> None:
    state["sum_of_gradients"].add_(gradient)
    state["sum_of_products"].add_((live - state["mean"]) * gradient)


def _update(
    live: Tensor,
    state: dict[str, Tensor],
    lr: Tensor,
    settings: tuple[float, float, float, float, float],
    num_samples: int,
) -> None:
    ess, weight_decay, beta_1, beta_2, clip_radius = settings
    mean, hessian = state["mean"], state["hessian"]
    gradient = state["sum_of_gradients"] / num_samples
    product = state["sum_of_products"] / num_samples
    state["step"].add_(1)
    momentum = beta_1 * state["momentum"] + (1.0 - beta_1) * gradient
    # 1 - β₁ᵗ, which as it stands would lose digits in single precision for β₁ close to one.
    log_beta_1 = log(beta_1) if beta_1 > 0.0 else -inf
    correction = -torch.expm1(state["step"].to(mean.dtype) * log_beta_1)
    precision = hessian + weight_decay
    estimate = ess * precision * product
    difference = (1.0 - beta_2) * (estimate - hessian)
    hessian_new = hessian + difference + 0.5 * difference.square() / precision
    direction = (momentum / correction + weight_decay * mean) / (hessian_new + weight_decay)
    mean_new = mean - lr * direction.clamp(-clip_radius, clip_radius)
    state["momentum"].copy_(momentum)
    hessian.copy_(hessian_new)
    mean.copy_(mean_new)
    live.copy_(mean_new)
    state["sum_of_gradients"].zero_()
    state["sum_of_products"].zero_()


def _unchanged(function: Callable[..., None]) -> Callable[..., None]:
    return function


def _check_settings(group: dict[str, Any]) -> None:
    for name in ("lr", "ess", "hess_init", "clip_radius"):
        if not group[name] > 0:
            raise UserError(f"IVON's {name} must be positive, got {group[name]}")
    if not group["weight_decay"] >= 0:
        raise UserError(f"IVON's weight_decay must not be negative, got {group['weight_decay']}")
    if not all(0.0 <= beta < 1.0 for beta in group["betas"]):
        raise UserError(f"IVON's betas must lie in [0, 1), got {group['betas']}")
