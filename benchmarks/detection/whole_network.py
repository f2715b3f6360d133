"""Statistics that need the whole network: noise on all weights, gradients, sampling.

Each is as its authors describe it; `README.md` names them. Computed at the look and stored as
numbers, since they cannot be recomputed from features.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from math import log
from time import perf_counter

import torch
from torch import Tensor, nn
from torch.func import functional_call

from benchmarks.detection.training import loss_of
from epigrok.monitor import Tolerance, ToleranceSettings, tolerance
from epigrok.monitor.tolerance import AnswersAtScale
from epigrok.random_streams import integers, normal, stream_key

DEFAULT = ToleranceSettings(num_halvings=9)
"""Nine halvings leave a factor of 1.03, a third of the usual standard error."""
Pick = Callable[[Tensor], Tensor]
"""Chooses the rows that a look reads from a network's output."""


@lru_cache(maxsize=20_000)
def _noise(name: str, draw: int, shape: tuple[int, ...], device: torch.device) -> Tensor:
    """The same at every look, so it is drawn once."""
    return normal(stream_key(0, f"detection:noise:{name}"), shape, draw, device)


def _noise_like(values: Tensor, name: str, draw: int) -> Tensor:
    return _noise(name, draw, tuple(values.shape), values.device)


def std_noise_parameters(model: nn.Module, scale: float, draw: int) -> dict[str, Tensor]:
    """Noise of `scale` times the standard deviation of each matrix; vectors stay."""
    return {
        name: values.detach() + scale * values.detach().std() * _noise_like(values, name, draw)
        for name, values in model.named_parameters()
        if values.ndim >= 2
    }


def multiplied_parameters(model: nn.Module, scale: float, draw: int) -> dict[str, Tensor]:
    """w·(1 + s·ε) for all parameters."""
    return {
        name: values.detach() * (1.0 + scale * _noise_like(values, name, draw))
        for name, values in model.named_parameters()
    }


def answers_with(
    model: nn.Module, x: Tensor, pick: Pick, num_draws: int, noisy: Callable[..., dict[str, Tensor]]
) -> AnswersAtScale:
    """Answers of a model some of whose parameters are replaced by `noisy(model, scale, draw)`.

    Answers to one size of noise are remembered: bisections to other levels begin alike.
    """

    @lru_cache(maxsize=64)
    @torch.no_grad()
    def answers(scale: float) -> Tensor:
        draws = range(num_draws if scale else 1)
        rows = [
            pick(functional_call(model, noisy(model, scale, draw), (x,))).argmax(dim=-1)
            for draw in draws
        ]
        return torch.stack(rows).expand(num_draws, -1).cpu()

    return answers


def _stretched(
    model: nn.Module, scale: float, draw: int, deviation: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Weights drawn from a Gaussian whose deviation is stretched by `scale`."""
    return {
        name: values.detach() + scale * deviation[name] * _noise_like(values, name, draw)
        for name, values in model.named_parameters()
        if name in deviation
    }


def network_tolerances(
    model: nn.Module,
    part: Callable[[int], tuple[Tensor, Pick]],
    num_classes: int,
    is_slow: bool,
    deviation: Mapping[str, Tensor] | None = None,
) -> tuple[dict[str, Tolerance], float]:
    """τ under noise on all of the network and on parts of it, and measured in other ways.

    `part` gives the inputs of so many rows and their picker. Slow networks are measured in one way
    only. With the `deviation` of a learnt posterior, τ is also the factor by which that may be
    stretched. Also returned are the seconds of the first.
    """

    def all_but_head(model: nn.Module, scale: float, draw: int) -> dict[str, Tensor]:
        noisy = multiplied_parameters(model, scale, draw)
        return {name: values for name, values in noisy.items() if not name.startswith("head")}

    inputs = part(256)
    whole = answers_with(model, *inputs, DEFAULT.num_draws, multiplied_parameters)
    start = perf_counter()
    found = {"whole": tolerance(whole, num_classes, DEFAULT)}
    seconds = perf_counter() - start
    asked: dict[str, tuple[AnswersAtScale, ToleranceSettings]] = {}
    if not is_slow:
        asked = {
            "whole, 4 draws": (lambda scale: whole(scale)[:4], replace(DEFAULT, num_draws=4)),
            "whole, 64 rows": (lambda scale: whole(scale)[:, :64], DEFAULT),
            "all but head": (answers_with(model, *inputs, 8, all_but_head), DEFAULT),
        }
    if deviation is not None:
        stretched = partial(_stretched, deviation=deviation)
        asked["learnt deviation"] = (answers_with(model, *inputs, 8, stretched), DEFAULT)
    for name, (answers, settings) in asked.items():
        found[name] = tolerance(answers, num_classes, settings)
    return found, seconds


@torch.no_grad()
def epistemic_rows(
    model: nn.Module, x: Tensor, pick: Pick, scale: float, num_draws: int = 16
) -> Tensor:
    """Mutual information of label and weight draw, row by row, under std-relative noise."""
    mean, mean_entropy = 0.0, 0.0
    for draw in range(num_draws):
        noisy = std_noise_parameters(model, scale, draw)
        logs = pick(functional_call(model, noisy, (x,))).double().log_softmax(dim=-1)
        mean = mean + logs.exp() / num_draws
        mean_entropy = mean_entropy - (logs.exp() * logs).sum(dim=-1) / num_draws
    total = -torch.xlogy(mean, mean).sum(dim=-1)
    return (total - mean_entropy).clamp_min(0.0).cpu()


def local_learning_coefficient(
    model: nn.Module, x: Tensor, y: Tensor, step_size: float, num_steps: int = 60
) -> float:
    """λ = nβ (E[L] - L(w*)) by SGLD round the current weights, nβ = n/ln n, localisation 100."""
    centre = {name: values.detach() for name, values in model.named_parameters()}
    here = {name: values.clone() for name, values in centre.items()}
    strength = len(x) / log(len(x))
    key = stream_key(0, "detection:sgld")
    differences = []
    for step in range(num_steps):
        rows = integers(key, len(x), (min(len(x), 256),), step, x.device)
        for values in here.values():
            values.requires_grad_(True)
        loss = _loss_at(model, here, x[rows], y[rows])
        gradients = torch.autograd.grad(loss, list(here.values()), allow_unused=True)
        with torch.no_grad():
            if step >= num_steps // 3:
                at_centre = _loss_at(model, centre, x[rows], y[rows])
                differences.append(float(loss - at_centre))
            for (name, values), gradient in zip(list(here.items()), gradients):
                pull = 100.0 * (values - centre[name])
                if gradient is not None:
                    pull = pull + strength * gradient
                noise = _noise_like(values, f"sgld:{name}", step)
                here[name] = (values - 0.5 * step_size * pull + step_size**0.5 * noise).detach()
    return strength * sum(differences) / len(differences)


def commutator_defect(
    model: nn.Module, x: Tensor, y: Tensor, num_pairs: int = 9, rate: float = 1e-3
) -> float:
    """Median of ‖θ_AB - θ_BA‖/(‖η g_A‖ ‖η g_B‖) over pairs of batches."""
    start = {name: values.detach().clone() for name, values in model.named_parameters()}
    key = stream_key(0, "detection:commutator")
    size = max(2, min(len(x) // 2, 128))
    defects = []
    for pair in range(num_pairs):
        rows = integers(key, len(x), (2, size), pair, x.device)
        first, second = ((x[part], y[part]) for part in rows)
        after_first, length_first = _moved(model, start, *first, rate)
        after_second, length_second = _moved(model, start, *second, rate)
        one, _ = _moved(model, after_first, *second, rate)
        other, _ = _moved(model, after_second, *first, rate)
        apart = sum(float((one[name] - other[name]).square().sum()) for name in one) ** 0.5
        defects.append(apart / max(length_first * length_second, 1e-30))
    return float(torch.tensor(defects, dtype=torch.float64).median())


def _moved(
    model: nn.Module, at: dict[str, Tensor], x: Tensor, y: Tensor, rate: float
) -> tuple[dict[str, Tensor], float]:
    """Parameters one gradient step on, and the length of that step."""
    here = {name: values.detach().requires_grad_(True) for name, values in at.items()}
    gradients = torch.autograd.grad(
        _loss_at(model, here, x, y), list(here.values()), allow_unused=True
    )
    step = {
        name: torch.zeros_like(values) if gradient is None else rate * gradient
        for (name, values), gradient in zip(here.items(), gradients)
    }
    length = sum(float(part.square().sum()) for part in step.values()) ** 0.5
    return {name: values.detach() - step[name] for name, values in here.items()}, length


def _loss_at(model: nn.Module, at: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
    return loss_of(lambda inputs: functional_call(model, at, (inputs,)), x, y)  # type: ignore[arg-type]
