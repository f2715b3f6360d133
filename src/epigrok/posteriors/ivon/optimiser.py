r"""IVON: an optimiser that carries a diagonal Gaussian posterior over the weights it trains.

With effective sample size λ and weight decay δ (prior precision λδ), the posterior is N(m, σ²) with
σ² = 1/(λ(h + δ)). Each step draws θ = m + σε, takes the gradient ĝ of the mean loss there, and
updates (the paper's appendix on methods; Shen et al. 2024):

    ĥ = ĝ·(θ - m)/σ²                                      Hessian by reparameterisation
    g ← β₁ g + (1-β₁) ĝ                                   momentum
    h ← β₂ h + (1-β₂) ĥ + ½(1-β₂)² (h - ĥ)²/(h + δ)       the last term keeps h + δ positive
    m ← m - α clip((g/(1-β₁ᵗ) + δm)/(h + δ), ±radius)     with the new h

All state is flat buffers, float32 or wider, whose addresses never change; parameters and gradients
are views into such buffers, and step and learning rate are tensors, so that a compiled or captured
step stays valid. The noise is a function of (seed, step, sample, position): no generator's state
needs saving, a sample can be left and entered again, and all processes that train together with
one seed draw the same.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from math import inf
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from epigrok.errors import UserError
from epigrok.model.compilation import compiled as fused
from epigrok.posteriors.gaussian import DiagonalGaussian, frozen_tensors
from epigrok.posteriors.ivon.flat_parameters import FlatParameters
from epigrok.posteriors.ivon.sampled_gradients import SampledGradients
from epigrok.posteriors.ivon.update import perturb, sigma, update
from epigrok.random_streams import stream_key

_Part = tuple[int, FlatParameters, dict[str, Tensor], dict[str, Any]]
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

    Outside the block the parameters are the posterior's mean, also after somebody else has set
    them, as `model.load_state_dict` does, and `.grad` is the gradient that `step` will use: clip it
    there or inside, the result is the same. A clipped gradient also scales the estimate of the
    Hessian, entry by entry.

    A block is a sample: give each the whole loss, and `step` uses their average. To accumulate
    gradients over parts of a batch, stay at one sample: one block around all parts, or one for
    each with the same number, `sampled_weights(0)`. There gradients add up, so scale the losses as
    for any optimiser, to add up to the mean loss of the large batch. A backward pass outside a
    block is refused by the next block or step.

    Data-parallel processes must be given the same `seed`. They then take the same sample, so that
    averaged gradients are those of the large batch and nothing else needs to be synchronised.

    Build it after moving, converting and freezing the model. docs/ivon-in-your-loop.md shows it in
    plain loops, Lightning and Transformers.

    Args:
        params: Parameters or parameter groups, all of a group of one type on one device. Frozen
            ones are left alone. For parameters in bfloat16 the state is float32.
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
        self._flats: dict[int, FlatParameters] = {}
        settings = {"lr": lr, "ess": ess, "weight_decay": weight_decay, "hess_init": hess_init}
        super().__init__(params, {**settings, "betas": betas, "clip_radius": clip_radius})
        self._seed = seed
        for index, group in enumerate(self.param_groups):
            _check_settings(group)
            group["params"] = [p for p in group["params"] if p.requires_grad]
            if group["params"]:
                self._flats[index] = _prepared(group, self.state)
        if not self._flats:
            raise UserError("there is nothing to train: all parameters are frozen")
        is_gpu = next(iter(self._flats.values())).live.device.type == "cuda"
        fuse = fused if (is_gpu if compiled is None else compiled) else _unchanged
        self._perturb, self._update = fuse(perturb), fuse(update)
        self._gradients = SampledGradients(list(self._flats.values()))
        self._is_sampling = False

    @contextmanager
    def sampled_weights(self, sample: int | None = None) -> Iterator[None]:
        """Set the parameters to a sample of this step; on leaving, restore the mean.

        After an exception the mean is restored as well, and all gradients since the last step are
        forgotten.

        Args:
            sample: Which of the step's samples, by default a further one. Gradients of one sample
                add up over blocks; different samples are averaged.
        """
        if self._is_sampling:
            raise RuntimeError("sampled_weights cannot be entered while it is active")
        self._follow_parameters()
        sample = self._gradients.start(sample)
        self._is_sampling = True
        try:
            with torch.no_grad():
                for (index, flat, state, group), deviation in self._parts_at_sample():
                    key = stream_key(self._seed, f"ivon:{index}:{sample}")
                    settings = (group["ess"], group["weight_decay"])
                    self._perturb(flat.live, deviation, state, settings, key)
            yield
            self._gradients.end(sample)
        except BaseException:
            self._gradients.forget()
            raise
        finally:
            for _, flat, state, _ in self._parts():
                flat.live.copy_(state["mean"])
            self._is_sampling = False

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the posterior from the gradients of the samples since the last step.

        Args:
            closure: Clears gradients, computes the loss and calls `backward`; it runs at a sample.

        Returns:
            What the closure returned.
        """
        loss = None
        if closure is not None:
            block = nullcontext() if self._is_sampling else self.sampled_weights()
            with torch.enable_grad(), block:
                loss = closure()
        if self._is_sampling:
            raise RuntimeError("step must be taken after leaving `sampled_weights()`")
        self._gradients.require_some()
        self._follow_parameters()
        for (_, flat, state, group), deviation in self._parts_at_sample():
            beta_1, beta_2 = group["betas"]
            settings = (group["ess"], group["weight_decay"], beta_1, beta_2, group["clip_radius"])
            # Somebody may have set it to a plain number.
            lr = torch.as_tensor(group["lr"], dtype=deviation.dtype, device=deviation.device)
            self._update((flat.live, flat.gradient, deviation), state, lr, settings)
        self._gradients.forget()
        return loss

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Refused once the optimiser is built, with a buffer for every group it was given."""
        if self._flats:
            raise UserError(
                "IVON takes no parameter group once it is built; build it with all groups"
            )
        super().add_param_group(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients in place: they are views that must stay attached.

        Outside `sampled_weights` this forgets the samples that wait for a step.
        """
        del set_to_none
        self._gradients.clear(self._is_sampling)

    def posterior(self, model: nn.Module, seed: int = 0) -> DiagonalGaussian:
        """The current posterior over `model`'s parameters, with its buffers as they are now."""
        deviation_of: dict[int, Tensor] = {}
        mean_of: dict[int, Tensor] = {}
        for _, flat, state, group in self._parts():
            width = sigma(state["hessian"], group["ess"], group["weight_decay"])
            deviation_of |= {id(p): d for p, d in zip(group["params"], flat.views_of(width))}
            if self._is_sampling:
                # Until the block is left, the parameters are a sample.
                means = flat.views_of(state["mean"].to(flat.live.dtype, copy=True))
                mean_of |= {id(p): m for p, m in zip(group["params"], means)}
        keys = {name: id(p) for name, p in model.named_parameters() if id(p) in deviation_of}
        if len(keys) < len(deviation_of):
            raise UserError("IVON's posterior is over the parameters it trains: not of this model")
        deviation = {name: deviation_of[key] for name, key in keys.items()}
        mean = {name: mean_of[key] for name, key in keys.items() if key in mean_of}
        return DiagonalGaussian("ivon", frozen_tensors(model) | mean, deviation, seed)

    def spread(self) -> dict[str, float]:
        """Quantiles of σ and h over the largest group: how wide and how uneven the posterior is."""
        _, _, state, group = max(self._parts(), key=lambda part: len(part[1].live))
        # A hundred thousand entries tell the quantiles of millions.
        hessian = state["hessian"][:: max(1, len(state["hessian"]) // 100_000)]
        width = sigma(hessian, group["ess"], group["weight_decay"])
        return {
            f"{name}_{label}": values.quantile(level).item()
            for name, values in (("sigma", width), ("hessian", hessian))
            for label, level in _QUANTILES.items()
        }

    def state_dict(self) -> dict[str, Any]:
        """Mean, momentum, Hessian and step of every group, with its settings.

        Gradients that wait for a step are not part of it.
        """
        if not self._is_sampling:
            self._follow_parameters()
        saved = super().state_dict()
        saved["state"] = {
            key: {name: entry.clone() for name, entry in state.items()}
            for key, state in saved["state"].items()
        }
        for group in saved["param_groups"]:
            if isinstance(group["lr"], Tensor):
                group["lr"] = group["lr"].clone()
        return saved

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Copy a saved state into the buffers in place, so that no address changes."""
        saved_states = list(state_dict["state"].values())
        sizes = [len(saved["mean"]) for saved in saved_states]
        if sizes != [len(flat.live) for flat in self._flats.values()]:
            raise UserError(f"saved IVON state has groups of sizes {sizes}, unlike this optimiser")
        for (index, flat, state, group), saved in zip(self._parts(), saved_states):
            flat.require_attached()
            for name, entry in state.items():
                entry.copy_(saved[name])
            flat.live.copy_(state["mean"])
            settings = dict(state_dict["param_groups"][index])
            if isinstance(group["lr"], Tensor):
                settings["lr"] = group["lr"].copy_(torch.as_tensor(settings["lr"]))
            group |= {name: value for name, value in settings.items() if name != "params"}
        # Samples taken since the last step belong to the state that is given up.
        self._gradients.forget()

    @torch.no_grad()
    def _follow_parameters(self) -> None:
        """Make the mean what the parameters are: between samples, anybody may have set them."""
        for _, flat, state, _ in self._parts():
            flat.require_attached()
            flat.copy_parameters_to(state["mean"])

    def _parts_at_sample(self) -> Iterator[tuple[_Part, Tensor]]:
        return zip(self._parts(), self._gradients.deviations)

    def _parts(self) -> Iterator[_Part]:
        """Number, parameters, state and settings of every group that has something to train."""
        for index, flat in self._flats.items():
            group = self.param_groups[index]
            yield index, flat, self.state[group["params"][0]], group


def _prepared(group: dict[str, Any], states: dict[Tensor, Any]) -> FlatParameters:
    """Lay the parameters of a group into a buffer and give it its state."""
    flat = FlatParameters(group["params"])
    mean = flat.live.to(flat.wide_dtype, copy=True)
    group["lr"] = mean.new_tensor(group["lr"])
    states[group["params"][0]] = {
        "mean": mean,
        "momentum": torch.zeros_like(mean),
        "hessian": torch.full_like(mean, group["hess_init"]),
        "step": torch.zeros((), dtype=torch.int64, device=mean.device),
    }
    return flat


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
