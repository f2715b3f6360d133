"""Every posterior over every kind of network, against references that share no code with them.

References use copies of the networks and plain forward passes; for Laplace the Gauss-Newton matrix
comes from automatic differentiation with respect to a head that nothing else uses, and samples from
the root of a dense covariance. They share with the package only the random numbers.

Letters: S samples, N predictions, C classes, D features (with the one for a bias).
"""

import warnings
from copy import deepcopy
from typing import Any

import pytest
import torch
from any_networks import CASES, Case, made
from torch import Tensor, nn
from torch.func import functional_call, jacrev
from torch.nn.modules.batchnorm import _BatchNorm

import epigrok
from epigrok.posteriors import (
    IVON,
    DiagonalLaplace,
    Ensemble,
    ExactLaplace,
    LastLayerLaplace,
    MCDropout,
    Point,
    WeightNoise,
)
from epigrok.posteriors.exact_laplace import exact_curvature
from epigrok.posteriors.head_curvature import labelled_features
from epigrok.random_streams import normal, stream_key

PRIOR, NUM_SAMPLES = 2.0, 3
LAPLACE = {"kronecker": LastLayerLaplace, "exact": ExactLaplace, "diagonal": DiagonalLaplace}
KINDS = ("point", "weight-noise", *LAPLACE, "ivon", "ensemble", "mc-dropout")


def posterior_of(kind: str, name: str, case: Case) -> Any:
    if kind in LAPLACE:
        return LAPLACE[kind].fit(case.model, case.loader, prior=PRIOR)
    if kind == "ensemble":
        return Ensemble.of([case.model, made(name, seed=1).model])
    if kind == "ivon":
        optimiser = IVON(case.model.parameters(), 0.1, ess=100.0, hess_init=0.5, betas=(0.9, 0.9))
        with optimiser.sampled_weights():
            case.call(case.model).square().mean().backward()
        optimiser.step()
        optimiser.zero_grad()
        return optimiser.posterior(case.model)
    makers = {
        "point": Point.of,
        "weight-noise": lambda model: WeightNoise.relative(model, 0.3),
        "mc-dropout": MCDropout.of,
    }
    return makers[kind](case.model)


def expected_probs(kind: str, name: str, case: Case, posterior: Any) -> list[Tensor]:
    """Probabilities under each sample, by a plain loop."""
    if kind in LAPLACE:
        return [head_probs(case, matrix) for matrix in laplace_heads(kind, case)]
    if kind == "ensemble":
        return [probs_of(case, model) for model in (case.model, made(name, seed=1).model)]
    if kind == "mc-dropout":
        return [dropout_probs(case, posterior.sample(index).seed) for index in range(NUM_SAMPLES)]
    if kind == "point":
        return [probs_of(case, case.model)]
    return [probs_of(case, noisy_copy(kind, case, posterior, s)) for s in range(NUM_SAMPLES)]


@torch.no_grad()
def noisy_copy(kind: str, case: Case, posterior: Any, index: int) -> nn.Module:
    """The network with noise on its weights: on those IVON trains, or a share of each matrix."""
    copy = deepcopy(case.model)
    for name, weights in copy.named_parameters():
        noise = normal(stream_key(0, f"posterior:{name}"), tuple(weights.shape), index)
        if kind == "ivon" and name in posterior.deviation:
            weights += posterior.deviation[name] * noise
        elif kind == "weight-noise" and weights.ndim > 1:
            weights += 0.3 * weights.std() * noise
    return copy


@torch.no_grad()
def probs_of(case: Case, model: nn.Module) -> Tensor:
    return case.call(deepcopy(model).eval()).double().softmax(dim=-1)


@torch.no_grad()
def dropout_probs(case: Case, seed: int) -> Tensor:
    copy = deepcopy(case.model).train()
    for module in copy.modules():
        if isinstance(module, _BatchNorm):
            module.eval()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return case.call(copy).double().softmax(dim=-1)


def head_parameters(case: Case) -> dict[str, Tensor]:
    layer = case.untied.get_submodule(case.head)
    return {f"{case.head}.{name}": weights.detach() for name, weights in layer.named_parameters()}


def matrix_of(parts: list[Tensor]) -> Tensor:
    """Weight and bias, or derivatives by them, with the bias as last column."""
    columns = [part if name == 0 else part.unsqueeze(-1) for name, part in enumerate(parts)]
    return torch.cat(columns, dim=-1)


def head_probs(case: Case, matrix: Tensor) -> Tensor:
    names = list(head_parameters(case))
    parts = [matrix] if len(names) == 1 else [matrix[:, :-1], matrix[:, -1]]
    tensors = {name: part.float() for name, part in zip(names, parts, strict=True)}
    return functional_model(case, tensors, case.inputs).detach().double().softmax(dim=-1)


def functional_model(case: Case, tensors: dict[str, Tensor], inputs: Any) -> Tensor:
    is_mapping = isinstance(inputs, dict)
    args, kwargs = ((), inputs) if is_mapping else ((inputs,), {})
    output = functional_call(case.untied, tensors, args, kwargs)
    return output["logits"] if isinstance(output, dict) else output


def derivatives(case: Case) -> tuple[Tensor, Tensor]:
    """Probabilities and derivatives of the logits by the head, at every answer that counts."""
    all_probs, all_jacobians = [], []
    for batch in case.loader:
        inputs, labels = (
            ({k: v for k, v in batch.items() if k != "labels"}, batch["labels"])
            if isinstance(batch, dict)
            else batch
        )
        # Hugging Face's causal models answer the next token.
        if type(case.model).__name__ == "GPT2LMHeadModel":
            labels = torch.cat([labels[:, 1:], torch.full((len(labels), 1), -100)], dim=1)
        is_counted = labels != -100
        if isinstance(inputs, dict) and "attention_mask" in inputs and labels.ndim == 2:
            is_counted &= inputs["attention_mask"].bool()

        def logits(tensors: dict[str, Tensor], inputs: Any = inputs) -> Tensor:
            return functional_model(case, tensors, inputs)

        parameters = head_parameters(case)
        jacobian = jacrev(logits)(parameters)
        parts = [jacobian[name][is_counted].double() for name in parameters]
        all_probs.append(logits(parameters)[is_counted].detach().double().softmax(dim=-1))
        all_jacobians.append(matrix_of(parts))
    return torch.cat(all_probs), torch.cat(all_jacobians)


def laplace_heads(kind: str, case: Case) -> list[Tensor]:
    probs_NC, jacobian = derivatives(case)
    of_class = probs_NC.diag_embed() - probs_NC[:, :, None] * probs_NC[:, None, :]
    flat = jacobian.flatten(start_dim=2)
    hessian = torch.einsum("nip,nij,njq->pq", flat, of_class, flat)
    if kind == "diagonal":
        hessian = hessian.diagonal().diag()
    if kind == "kronecker":
        features_ND = jacobian[:, 0, 0, :]
        second_moment = features_ND.T @ features_ND / len(features_ND)
        hessian = torch.kron(of_class.sum(dim=0), second_moment)
    values, basis = torch.linalg.eigh(hessian + PRIOR * torch.eye(len(hessian)).double())
    root = (basis * values.rsqrt()) @ basis.T
    mean = matrix_of([part.double() for part in head_parameters(case).values()])
    key, size = stream_key(0, "laplace"), mean.numel()
    noises = [normal(key, (size,), index).double() for index in range(NUM_SAMPLES)]
    return [mean + (root @ noise).view_as(mean) for noise in noises]


def naive_uncertainties(probs: list[Tensor]) -> tuple[Tensor, Tensor]:
    probs_SNC = torch.stack(probs)
    total = torch.special.entr(probs_SNC.mean(dim=0)).sum(dim=-1)
    return total, total - torch.special.entr(probs_SNC).sum(dim=-1).mean(dim=0)


class Snapshot:
    """All of a model that a prediction might change."""

    def __init__(self, model: nn.Module) -> None:
        self.tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        self.values = {name: tensor.detach().clone() for name, tensor in self.tensors.items()}
        self.needs_gradient = {n: tensor.requires_grad for n, tensor in self.tensors.items()}
        self.modes = [module.training for module in model.modules()]
        self.hooks = [len(module._forward_hooks) for module in model.modules()]
        self.random_state = torch.get_rng_state()

    def require_same(self, model: nn.Module) -> None:
        now = Snapshot(model)
        assert all(now.tensors[name] is tensor for name, tensor in self.tensors.items())
        assert all(torch.equal(now.values[name], value) for name, value in self.values.items())
        assert (now.needs_gradient, now.modes) == (self.needs_gradient, self.modes)
        assert now.hooks == self.hooks
        assert torch.equal(now.random_state, self.random_state)
        assert torch.is_grad_enabled()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_uncertainty_of_a_network_under_a_posterior(name: str, kind: str) -> None:
    case = made(name)
    if kind == "ivon":
        # It trains the network, whose parameters become views, so that comes first.
        posterior = posterior_of(kind, name, case)
        before = Snapshot(case.model)
    else:
        before = Snapshot(case.model)
        posterior = posterior_of(kind, name, case)
    before.require_same(case.model)
    expected = expected_probs(kind, name, case, posterior)
    total, epistemic = naive_uncertainties(expected)
    before.require_same(case.model)
    found = epigrok.predict(case.model, posterior, case.inputs, num_samples=NUM_SAMPLES)
    before.require_same(case.model)
    is_counted = found.is_counted
    if isinstance(case.inputs, dict) and found.total.ndim == 2:
        assert torch.equal(is_counted, case.inputs["attention_mask"].bool())
    else:
        assert is_counted.all()
    torch.testing.assert_close(found.total[is_counted], total[is_counted], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(
        found.epistemic[is_counted], epistemic[is_counted], rtol=2e-3, atol=1e-5
    )
    assert (found.epistemic[is_counted].max() > 1e-4) == (kind != "point")

    def fails(model: nn.Module, inputs: Any) -> Tensor:
        case.call(model)
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        epigrok.predict(case.model, posterior, case.inputs, forward=fails)
    before.require_same(case.model)
    if kind in LAPLACE:
        with pytest.raises(RuntimeError, match="boom"):
            LAPLACE[kind].fit(case.model, case.loader, forward=fails)
        before.require_same(case.model)


@pytest.mark.parametrize("structure", ["full", "diag"])
def test_the_curvature_is_that_of_a_public_implementation(structure: str) -> None:
    """Its Kronecker factors treat the bias apart, so only what is exact is compared."""
    laplace = pytest.importorskip("laplace")
    case = made("mlp")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = deepcopy(case.model).eval().requires_grad_(True)
        theirs = laplace.Laplace(model, "classification", "last_layer", structure)
        data = torch.utils.data.TensorDataset(
            torch.cat([x for x, _ in case.loader]), torch.cat([y for _, y in case.loader])
        )
        theirs.fit(torch.utils.data.DataLoader(data, batch_size=5))
    matrix = exact_curvature(*labelled_features(case.model, case.loader)).matrix
    num_classes, width = 3, 8
    # Theirs has all weights first and then all biases.
    order = torch.arange(num_classes * (width + 1)).view(num_classes, width + 1)
    order = torch.cat([order[:, :-1].flatten(), order[:, -1]])
    ours = matrix[order][:, order]
    expected = theirs.H.double() if structure == "full" else theirs.H.double().diag()
    compared = ours if structure == "full" else ours.diagonal().diag()
    torch.testing.assert_close(compared, expected, rtol=1e-4, atol=1e-5)
