"""IVON against an independent reference, a public implementation, and a case solved exactly."""

import copy
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from small_network import SETTINGS, loss_of, network, state_of, take_steps
from torch import Tensor, nn

import epigrok
from epigrok.errors import UserError
from epigrok.posteriors import IVON, load_posterior
from epigrok.random_streams import normal, stream_key


def reference_run(num_steps: int, num_samples: int) -> list[Tensor]:
    """The update equations, parameter by parameter, from the same noise."""
    model = network()
    parameters = list(model.parameters())
    sizes = [p.numel() for p in parameters]
    mean = [p.detach().clone() for p in parameters]
    momentum = [torch.zeros_like(p) for p in parameters]
    hessian = [torch.full_like(p, SETTINGS["hess_init"]) for p in parameters]
    ess, decay = SETTINGS["ess"], SETTINGS["weight_decay"]
    beta_1, beta_2 = SETTINGS["betas"]
    for step in range(num_steps):
        gradient = [torch.zeros_like(p) for p in parameters]
        estimate = [torch.zeros_like(p) for p in parameters]
        for sample in range(num_samples):
            noise = normal(stream_key(0, f"ivon:0:{sample}"), (sum(sizes),), step).double()
            for p, m, h, e in zip(parameters, mean, hessian, noise.split(sizes)):
                p.data = m + e.view(p.shape) / (ess * (h + decay)).sqrt()
            gradients = torch.autograd.grad(loss_of(model, step), parameters)
            for i, (p, m, h, g) in enumerate(zip(parameters, mean, hessian, gradients)):
                gradient[i] += g / num_samples
                variance = 1 / (ess * (h + decay))
                estimate[i] += g * (p.detach() - m) / variance / num_samples
        for i in range(len(parameters)):
            momentum[i] = beta_1 * momentum[i] + (1 - beta_1) * gradient[i]
            h, h_hat = hessian[i], estimate[i]
            hessian[i] = (
                beta_2 * h
                + (1 - beta_2) * h_hat
                + 0.5 * (1 - beta_2) ** 2 * (h - h_hat) ** 2 / (h + decay)
            )
            debiased = momentum[i] / (1 - beta_1 ** (step + 1))
            move = (debiased + decay * mean[i]) / (hessian[i] + decay)
            mean[i] = mean[i] - SETTINGS["lr"] * move.clamp(
                -SETTINGS["clip_radius"], SETTINGS["clip_radius"]
            )
    return mean + hessian


@pytest.mark.parametrize("num_samples", [1, 3])
def test_twenty_steps_match_an_independent_reference(num_samples: int) -> None:
    model = network()
    optimiser = IVON(model.parameters(), **SETTINGS)
    take_steps(model, optimiser, range(20), num_samples)
    expected = reference_run(20, num_samples)
    hessian = optimiser.state_dict()["state"][0]["hessian"]
    ours = [p.detach().flatten() for p in model.parameters()]
    torch.testing.assert_close(
        torch.cat(ours), torch.cat([e.flatten() for e in expected[:4]]), rtol=1e-6, atol=1e-9
    )
    torch.testing.assert_close(
        hessian, torch.cat([e.flatten() for e in expected[4:]]), rtol=1e-6, atol=1e-9
    )


def test_twenty_steps_match_a_public_implementation(monkeypatch: pytest.MonkeyPatch) -> None:
    ivon = pytest.importorskip("ivon")
    model, theirs = network(torch.float32), network(torch.float32)
    optimiser = IVON(model.parameters(), **SETTINGS)
    other = ivon.IVON(
        theirs.parameters(),
        lr=SETTINGS["lr"],
        ess=SETTINGS["ess"],
        hess_init=SETTINGS["hess_init"],
        beta1=0.9,
        beta2=0.97,
        weight_decay=SETTINGS["weight_decay"],
        clip_radius=SETTINGS["clip_radius"],
        rescale_lr=False,
    )
    for step in range(20):
        noise = normal(
            stream_key(0, "ivon:0:0"), (sum(p.numel() for p in model.parameters()),), step
        )
        monkeypatch.setattr(torch, "randn", lambda *_, noise=noise, **__: noise)
        other.zero_grad()
        with other.sampled_params(train=True):
            loss_of(theirs, step).backward()
        other.step()
        monkeypatch.undo()
        take_steps(model, optimiser, range(step, step + 1))
        for ours, p in zip(model.parameters(), theirs.parameters()):
            torch.testing.assert_close(ours, p, rtol=1e-5, atol=1e-5)


def test_on_a_quadratic_it_converges_to_the_exact_gaussian() -> None:
    """Loss ½(θ-c)ᵀdiag(a)(θ-c) with prior δ: posterior mean ac/(a+δ), precision λ(a+δ).

    Four such weights, each in 400 copies whose average stands for that over many steps.
    """
    curvature = torch.tensor([0.5, 1.0, 4.0, 10.0], dtype=torch.float64)[:, None]
    centre = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)[:, None]
    weights = nn.Parameter(torch.zeros(4, 400, dtype=torch.float64))
    decay, ess = 0.1, 200.0
    optimiser = IVON(
        [weights], lr=0.1, ess=ess, weight_decay=decay, hess_init=1.0, betas=(0.9, 0.995)
    )
    for _ in range(1200):
        optimiser.zero_grad()
        with optimiser.sampled_weights():
            (0.5 * curvature * (weights - centre) ** 2).sum().backward()
        optimiser.step()
    mean = weights.detach().mean(dim=1)
    exact_mean = (curvature * centre / (curvature + decay))[:, 0]
    torch.testing.assert_close(mean, exact_mean, rtol=0.01, atol=0.0)
    # The term that keeps the Hessian positive makes it one per cent too large at this β₂.
    hessian = optimiser.state_dict()["state"][0]["hessian"].view(4, 400).mean(dim=1)
    torch.testing.assert_close(hessian, curvature[:, 0], rtol=0.03, atol=0.0)
    posterior = optimiser.posterior(nn.ParameterDict({"w": weights}))
    exact = 1 / (ess * (curvature + decay)).sqrt()
    torch.testing.assert_close(
        posterior.deviation["w"].mean(dim=1, keepdim=True), exact, rtol=0.02, atol=0.0
    )


def test_an_exception_while_sampled_leaves_the_weights_and_the_next_step_as_they_were() -> None:
    model, undisturbed = network(), network()
    optimiser, other = (IVON(m.parameters(), **SETTINGS) for m in (model, undisturbed))
    take_steps(model, optimiser, range(3))
    take_steps(undisturbed, other, range(3))
    before = [p.detach().clone() for p in model.parameters()]

    def fail_while_sampled() -> None:
        with optimiser.sampled_weights():
            assert not torch.equal(next(model.parameters()), before[0])
            raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        fail_while_sampled()
    assert all(torch.equal(p, b) for p, b in zip(model.parameters(), before))
    take_steps(model, optimiser, range(3, 6))
    take_steps(undisturbed, other, range(3, 6))
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), undisturbed.parameters()))


@pytest.mark.parametrize("interruption", [1, 4, 9])
def test_its_state_travels_completely(interruption: int) -> None:
    model = network(torch.float32)
    optimiser = IVON(model.parameters(), **SETTINGS)
    take_steps(model, optimiser, range(interruption))
    resumed = network(torch.float32)
    restored = IVON(resumed.parameters(), **{**SETTINGS, "lr": 1.0, "ess": 1.0})
    restored.load_state_dict(copy.deepcopy(optimiser.state_dict()))
    take_steps(model, optimiser, range(interruption, 10))
    take_steps(resumed, restored, range(interruption, 10))
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), resumed.parameters()))


def test_a_posterior_of_another_model_is_refused() -> None:
    model = network()
    optimiser = IVON(model.parameters(), **SETTINGS)
    with pytest.raises(UserError, match="not of this model"):
        optimiser.posterior(copy.deepcopy(model))


def test_loading_a_state_forgets_samples_taken_since_the_last_step() -> None:
    model, undisturbed = network(), network()
    optimiser, other = (IVON(m.parameters(), **SETTINGS) for m in (model, undisturbed))
    good = copy.deepcopy(optimiser.state_dict())
    with optimiser.sampled_weights():
        (loss_of(model, 0) * float("nan")).backward()
    optimiser.load_state_dict(good)
    optimiser.zero_grad()
    take_steps(model, optimiser, range(2))
    take_steps(undisturbed, other, range(2))
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), undisturbed.parameters()))


COMPARE_COMPILED_WITH_EAGER = """
import torch
from epigrok.posteriors import IVON
from small_network import SETTINGS, network, take_steps

model, compiled_model = network(torch.float32), network(torch.float32)
optimiser = IVON(model.parameters(), **SETTINGS)
compiled = IVON(compiled_model.parameters(), **SETTINGS, compiled=True)
pointers = [p.data_ptr() for p in compiled_model.parameters()]
for step in range(12):
    take_steps(model, optimiser, range(step, step + 1))
    take_steps(compiled_model, compiled, range(step, step + 1))
    for ours, theirs in zip(compiled_model.parameters(), model.parameters()):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
assert pointers == [p.data_ptr() for p in compiled_model.parameters()]
"""


@pytest.mark.slow
def test_a_compiled_step_equals_an_eager_one() -> None:
    # In a process of its own: the shape checks that tests add cannot be compiled.
    subprocess.run(
        [sys.executable, "-c", COMPARE_COMPILED_WITH_EAGER],
        cwd=Path(__file__).parents[2],
        check=True,
    )


def test_no_address_changes_over_steps_and_loading() -> None:
    model = network(torch.float32)
    optimiser = IVON(model.parameters(), **SETTINGS)
    addresses = lambda: [  # noqa: E731
        *(p.data_ptr() for p in model.parameters()),
        *(p.grad.data_ptr() for p in model.parameters()),
        *(t.data_ptr() for t in optimiser.state[next(model.parameters())].values()),
        optimiser.param_groups[0]["lr"].data_ptr(),
    ]
    before = addresses()
    take_steps(model, optimiser, range(3))
    optimiser.load_state_dict(optimiser.state_dict())
    take_steps(model, optimiser, range(3))
    assert addresses() == before


def test_gradients_that_somebody_detached_are_found_again() -> None:
    model, other = network(), network()
    optimiser, second = (IVON(m.parameters(), **SETTINGS) for m in (model, other))
    for step in range(4):
        model.zero_grad(set_to_none=True)
        with optimiser.sampled_weights():
            loss_of(model, step).backward()
        optimiser.step()
    take_steps(other, second, range(4))
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), other.parameters()))


def test_weights_that_somebody_sets_are_the_new_mean() -> None:
    weights = {name: 2 * value for name, value in network().state_dict().items()}
    model, other = network(), network()
    optimiser = IVON(model.parameters(), **SETTINGS)
    model.load_state_dict(weights)
    saved = optimiser.state_dict()
    other.load_state_dict(weights)
    built_around_them = IVON(other.parameters(), **SETTINGS)
    expected = built_around_them.state_dict()
    assert torch.equal(saved["state"][0]["mean"], expected["state"][0]["mean"])
    take_steps(model, optimiser, range(3))
    take_steps(other, built_around_them, range(3))
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), other.parameters()))


def test_weights_set_between_a_sample_and_its_step_are_moved_from_there() -> None:
    model, other = network(), network()
    optimiser, undisturbed = (
        IVON(m.parameters(), **{**SETTINGS, "weight_decay": 0.0}) for m in (model, other)
    )
    for trained, ivon in ((model, optimiser), (other, undisturbed)):
        with ivon.sampled_weights():
            loss_of(trained, 0).backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 1.0
    optimiser.step()
    undisturbed.step()
    for ours, theirs in zip(model.parameters(), other.parameters()):
        torch.testing.assert_close(ours, theirs + 1.0)


@pytest.mark.parametrize("kind", ["converted", "replaced"])
def test_a_model_moved_after_building_is_refused(kind: str) -> None:
    model = network(torch.float32)
    optimiser = IVON(model.parameters(), **SETTINGS)
    take_steps(model, optimiser, range(1))
    saved = optimiser.state_dict()
    if kind == "converted":
        model.double().float()
    else:
        model[2].bias.data = model[2].bias.data.clone()
    for action in (
        lambda: take_steps(model, optimiser, range(1)),
        optimiser.state_dict,
        lambda: optimiser.load_state_dict(saved),
    ):
        with pytest.raises(UserError, match="build the optimiser after moving the model"):
            action()


def test_a_group_added_after_building_is_refused() -> None:
    model = network()
    optimiser = IVON(model[0].parameters(), **SETTINGS)
    with pytest.raises(UserError, match="build it with all groups"):
        optimiser.add_param_group({"params": list(model[2].parameters())})
    take_steps(model, optimiser, range(2))
    assert len(optimiser.param_groups) == 1


def test_a_closure_and_frozen_parameters_work() -> None:
    model = network()
    model[0].bias.requires_grad_(False)
    frozen = model[0].bias.clone()
    optimiser = IVON(model.parameters(), **SETTINGS)

    def closure() -> float:
        optimiser.zero_grad()
        loss = loss_of(model, 0)
        loss.backward()
        return loss.item()

    losses = [optimiser.step(closure) for _ in range(30)]
    assert losses[-1] < losses[0]
    assert torch.equal(model[0].bias, frozen)


def test_misuse_is_refused() -> None:
    model = network()
    optimiser = IVON(model.parameters(), **SETTINGS)
    with pytest.raises(RuntimeError, match="backward pass"):
        optimiser.step()
    with optimiser.sampled_weights(), pytest.raises(RuntimeError, match="while it is active"):
        optimiser.sampled_weights().__enter__()
    with optimiser.sampled_weights(), pytest.raises(RuntimeError, match="after leaving"):
        optimiser.step()
    for name, value in (("lr", 0.0), ("ess", -1.0), ("hess_init", 0.0), ("betas", (0.9, 1.0))):
        with pytest.raises(UserError, match=name):
            IVON(network().parameters(), **{**SETTINGS, name: value})
    with pytest.raises(UserError, match="all parameters are frozen"):
        IVON(network().requires_grad_(False).parameters(), **SETTINGS)


def test_a_group_of_frozen_parameters_is_left_alone() -> None:
    model = network()
    model[0].requires_grad_(False)
    frozen = model[0].weight.clone()
    groups = [{"params": list(layer.parameters())} for layer in (model[0], model[2])]
    optimiser = IVON(groups, **SETTINGS)
    take_steps(model, optimiser, range(3))
    assert torch.equal(model[0].weight, frozen)
    saved = optimiser.state_dict()
    before = state_of(optimiser)
    take_steps(model, optimiser, range(3))
    optimiser.load_state_dict(saved)
    assert torch.equal(state_of(optimiser), before)
    assert set(optimiser.posterior(model).deviation) == {"2.weight", "2.bias"}


def test_a_parameter_frozen_after_building_is_refused() -> None:
    model = network()
    optimiser = IVON(model.parameters(), **SETTINGS)
    model[0].bias.requires_grad_(False)
    with pytest.raises(UserError, match="build the optimiser after freezing"):
        take_steps(model, optimiser, range(1))


def test_parameters_in_bfloat16_have_a_state_in_float32() -> None:
    """Loss ½a(θ-c)², with c between two numbers of bfloat16: its mean is found all the same."""
    curvature, centre = torch.tensor([1.0, 4.0])[:, None], 1.05
    weights = nn.Parameter(torch.ones(2, 500, dtype=torch.bfloat16))
    optimiser = IVON(
        [weights], lr=0.01, ess=400.0, weight_decay=0.0, hess_init=2.0, betas=(0.0, 0.995)
    )
    for _ in range(1000):
        optimiser.zero_grad()
        with optimiser.sampled_weights():
            (0.5 * curvature * (weights.float() - centre) ** 2).sum().backward()
        # Steps of at most 5e-4: bfloat16, with a spacing of 2^-7 there, would stand still.
        optimiser.step()
    state = optimiser.state[weights]
    assert {state[name].dtype for name in ("mean", "momentum", "hessian")} == {torch.float32}
    mean, hessian = (state[name].view(2, 500) for name in ("mean", "hessian"))
    torch.testing.assert_close(mean.mean(dim=1), torch.full((2,), centre), rtol=0.0, atol=5e-4)
    # The term that keeps the Hessian positive makes it one per cent too large at this β₂.
    torch.testing.assert_close(hessian.mean(dim=1), curvature[:, 0], rtol=0.03, atol=0.0)
    assert torch.equal(weights, mean.to(torch.bfloat16))
    assert weights.grad is not None
    assert weights.grad.dtype == torch.bfloat16


def test_a_bfloat16_model_and_its_optimiser_resume_bit_for_bit_in_either_order() -> None:
    model = network(torch.bfloat16)
    optimiser = IVON(model.parameters(), **SETTINGS)
    take_steps(model, optimiser, range(4))
    weights, state = copy.deepcopy((model.state_dict(), optimiser.state_dict()))
    take_steps(model, optimiser, range(4, 8))
    for optimiser_first in (True, False):
        other = network(torch.bfloat16)
        restored = IVON(other.parameters(), **SETTINGS)
        if optimiser_first:
            restored.load_state_dict(state)
        other.load_state_dict(weights)
        if not optimiser_first:
            restored.load_state_dict(state)
        take_steps(other, restored, range(4, 8))
        assert torch.equal(state_of(restored), state_of(optimiser))


def test_a_learning_rate_that_is_a_plain_number_or_scheduled_is_used_and_restored() -> None:
    model = network()
    optimiser = IVON(model.parameters(), **SETTINGS)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1.0 / (1 + step))
    take_steps(model, optimiser, range(1))
    schedule.step()
    assert float(optimiser.param_groups[0]["lr"]) == pytest.approx(SETTINGS["lr"] / 2)
    saved = optimiser.state_dict()
    optimiser.param_groups[0]["lr"] = 0.0
    before = torch.cat([p.detach().flatten().clone() for p in model.parameters()])
    take_steps(model, optimiser, range(1))
    assert torch.equal(torch.cat([p.detach().flatten() for p in model.parameters()]), before)
    optimiser.load_state_dict(saved)
    assert float(optimiser.param_groups[0]["lr"]) == pytest.approx(SETTINGS["lr"] / 2)


def test_a_compiled_model_is_trained_and_has_a_posterior() -> None:
    model, plain = network(), network()
    compiled = torch.compile(model, backend="aot_eager")
    optimiser, other = (IVON(m.parameters(), **SETTINGS) for m in (compiled, plain))
    take_steps(compiled, optimiser, range(3))
    take_steps(plain, other, range(3))
    torch.testing.assert_close(state_of(optimiser), state_of(other))
    posterior = optimiser.posterior(compiled)
    inputs = torch.ones(2, 5, dtype=torch.float64)
    for index in range(2):
        sampled = torch.func.functional_call(
            model, dict(optimiser.posterior(model).sample(index)), (inputs,)
        )
        assert not torch.equal(sampled, model(inputs))
    assert len(posterior.deviation) == 4


@pytest.mark.parametrize("beta_1", [0.0, 0.9, 0.999999])
def test_a_first_step_follows_its_gradient_whatever_the_momentum(beta_1: float) -> None:
    weights = nn.Parameter(torch.tensor([1.0]))
    unbounded = {"weight_decay": 0.0, "clip_radius": 100.0}
    settings = {**SETTINGS, **unbounded, "betas": (beta_1, 1 - 1e-7), "ess": 1e16}
    optimiser = IVON([weights], **settings)
    with optimiser.sampled_weights():
        (3.0 * weights).sum().backward()
    optimiser.step()
    step = SETTINGS["lr"] * 3.0 / SETTINGS["hess_init"]
    assert weights.item() == pytest.approx(1.0 - step, rel=1e-5)


def test_the_posterior_has_the_spread_it_reports() -> None:
    model = network(torch.float32)
    optimiser = IVON(model.parameters(), **SETTINGS)
    expected = 1 / math.sqrt(500.0 * 0.42)
    spread = optimiser.spread()
    assert spread["sigma_q05"] == pytest.approx(expected)
    assert spread["hessian_q95"] == pytest.approx(0.4)
    posterior = optimiser.posterior(model)
    draws = torch.stack([posterior.sample(index)["0.weight"] for index in range(200)])
    noise = (draws - model[0].weight.detach()) / expected
    # Standard normal, to four standard errors of 200 x 35 numbers.
    assert noise.mean().abs() < 4 / math.sqrt(7000)
    assert (noise.var() - 1).abs() < 4 * math.sqrt(2 / 7000)


def test_the_posterior_of_a_batch_norm_network_keeps_its_averages(tmp_path: Path) -> None:
    def batch_norm_network() -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))

    model = batch_norm_network()
    inputs = normal(stream_key(3, "data"), (20, 4), 0).float()
    model(inputs)
    posterior = IVON(model.parameters(), **SETTINGS).posterior(model)
    expected = epigrok.predict(model, posterior, inputs, num_samples=3).probs
    posterior.save(tmp_path / "posterior.safetensors")
    # A pass in training mode moves the live averages.
    model(10.0 * inputs)
    assert torch.equal(epigrok.predict(model, posterior, inputs, num_samples=3).probs, expected)
    again = load_posterior(tmp_path / "posterior.safetensors")
    found = epigrok.predict(batch_norm_network(), again, inputs, num_samples=3).probs
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_posterior_has_the_same_mean_inside_a_block(dtype: torch.dtype) -> None:
    model = network(dtype)
    optimiser = IVON(model.parameters(), **SETTINGS)
    take_steps(model, optimiser, range(2))
    outside = optimiser.posterior(model)
    with optimiser.sampled_weights():
        inside = optimiser.posterior(model)
        assert not torch.equal(model[0].weight, inside.mean["0.weight"])
    take_steps(model, optimiser, range(2))
    for name, weights in outside.mean.items():
        assert torch.equal(inside.mean[name], weights)
        assert inside.mean[name].dtype == dtype
