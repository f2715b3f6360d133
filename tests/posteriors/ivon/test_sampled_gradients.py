"""Which gradients IVON's step uses: accumulated, clipped, cleared; and which it refuses."""

from collections.abc import Callable

import pytest
import torch
from small_network import SETTINGS, loss_of, network, state_of, take_steps
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from epigrok.posteriors import IVON

ROUNDING = {"rtol": 1e-10, "atol": 1e-12}


def trained() -> tuple[nn.Module, IVON]:
    model = network()
    optimiser = IVON(model.parameters(), **SETTINGS)
    take_steps(model, optimiser, range(2))
    return model, optimiser


def parts(number: int) -> list[slice]:
    return [slice(20 * i // number, 20 * (i + 1) // number) for i in range(number)]


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("blocks", ["one", "several", "with a closure"])
def test_accumulated_gradients_equal_those_of_the_large_batch(number: int, blocks: str) -> None:
    large, large_optimiser = trained()
    take_steps(large, large_optimiser, range(2, 8))
    model, optimiser = trained()
    for step in range(2, 8):
        losses: list[Callable[[], None]] = [
            lambda rows=rows, step=step: (loss_of(model, step, rows) / number).backward()
            for rows in parts(number)
        ]
        optimiser.zero_grad()
        if blocks == "one":
            with optimiser.sampled_weights():
                for loss in losses:
                    loss()
            optimiser.step()
            continue
        if blocks == "several":
            for loss in losses:
                with optimiser.sampled_weights(0):
                    loss()
            optimiser.step()
            continue
        optimiser.step(lambda losses=losses: [loss() for loss in losses])
    torch.testing.assert_close(state_of(optimiser), state_of(large_optimiser), **ROUNDING)


def test_blocks_without_a_number_are_further_samples() -> None:
    model, optimiser = trained()
    other, second = trained()
    for sample in range(4):
        with optimiser.sampled_weights():
            loss_of(model, 5).backward()
        with second.sampled_weights(sample):
            loss_of(other, 5).backward()
    optimiser.step()
    second.step()
    assert torch.equal(state_of(optimiser), state_of(second))


def test_parts_of_a_batch_and_several_samples_go_together_in_any_order() -> None:
    model, optimiser = trained()
    other, second = trained()
    for sample in range(2):
        for rows in parts(4):
            with optimiser.sampled_weights(sample):
                (loss_of(model, 5, rows) / 4).backward()
    for rows in parts(4):
        for sample in range(2):
            with second.sampled_weights(sample):
                (loss_of(other, 5, rows) / 4).backward()
    optimiser.step()
    second.step()
    torch.testing.assert_close(state_of(optimiser), state_of(second), **ROUNDING)


@pytest.mark.parametrize("where", ["before a block", "before a closure", "after a block", "alone"])
def test_gradients_that_were_not_taken_at_a_sample_are_refused(where: str) -> None:
    model, optimiser = trained()
    at_the_mean = lambda: (loss_of(model, 2) / 2).backward()  # noqa: E731

    def misuse() -> None:
        if where == "after a block":
            with optimiser.sampled_weights():
                at_the_mean()
        at_the_mean()
        if where == "before a block":
            with optimiser.sampled_weights():
                at_the_mean()
        optimiser.step(at_the_mean if where == "before a closure" else None)

    before = state_of(optimiser)
    with pytest.raises(RuntimeError, match="a backward pass ran outside `sampled_weights"):
        misuse()
    assert torch.equal(state_of(optimiser), before)


@pytest.mark.parametrize("clear", ["optimiser", "model", "model in place"])
def test_gradients_at_the_mean_that_were_cleared_do_no_harm(clear: str) -> None:
    model, optimiser = trained()
    undisturbed, other = trained()
    loss_of(model, 7).backward()
    if clear == "optimiser":
        optimiser.zero_grad()
    else:
        model.zero_grad(set_to_none=clear == "model")
    with optimiser.sampled_weights():
        loss_of(model, 2).backward()
    optimiser.step()
    take_steps(undisturbed, other, range(2, 3))
    assert torch.equal(state_of(optimiser), state_of(other))


@pytest.mark.parametrize("num_samples", [1, 3])
@pytest.mark.parametrize("clear", ["optimiser", "model"])
def test_a_batch_whose_gradients_are_cleared_is_skipped(clear: str, num_samples: int) -> None:
    model, optimiser = trained()
    undisturbed, other = trained()
    for sample in range(num_samples):
        with optimiser.sampled_weights(sample):
            (loss_of(model, 2) * float("nan")).backward()
    (optimiser if clear == "optimiser" else model).zero_grad()
    for sample in range(num_samples):
        with optimiser.sampled_weights(sample):
            loss_of(model, 2).backward()
    optimiser.step()
    take_steps(undisturbed, other, range(2, 3), num_samples)
    assert torch.equal(state_of(optimiser), state_of(other))


def test_a_step_uses_its_gradients_up() -> None:
    model, optimiser = trained()
    cleared, other = trained()
    for step in range(2, 5):
        with optimiser.sampled_weights():
            loss_of(model, step).backward()
        optimiser.step()
    take_steps(cleared, other, range(2, 5))
    assert torch.equal(state_of(optimiser), state_of(other))


@pytest.mark.parametrize("clip", [clip_grad_norm_, clip_grad_value_])
def test_clipping_after_the_block_is_clipping_inside_it(clip: Callable[..., object]) -> None:
    model, optimiser = trained()
    other, second = trained()
    free, third = trained()
    for step in range(2, 6):
        optimiser.zero_grad()
        with optimiser.sampled_weights():
            loss_of(model, step).backward()
        clip(model.parameters(), 0.01)
        optimiser.step()
        second.zero_grad()
        with second.sampled_weights():
            loss_of(other, step).backward()
            clip(other.parameters(), 0.01)
        second.step()
    take_steps(free, third, range(2, 6))
    assert torch.equal(state_of(optimiser), state_of(second))
    assert not torch.allclose(state_of(optimiser), state_of(third), rtol=1e-3)


@pytest.mark.parametrize("num_samples", [1, 3])
def test_a_scaled_gradient_scales_the_hessian_estimate(num_samples: int) -> None:
    model, optimiser = trained()
    smaller, other = trained()
    for sample in range(num_samples):
        with optimiser.sampled_weights(sample):
            loss_of(model, 2).backward()
        with other.sampled_weights(sample):
            (0.1 * loss_of(smaller, 2)).backward()
    for parameter in model.parameters():
        parameter.grad *= 0.1
    optimiser.step()
    other.step()
    torch.testing.assert_close(state_of(optimiser), state_of(other), **ROUNDING)


def test_a_gradient_that_was_replaced_is_used() -> None:
    model, optimiser = trained()
    other, second = trained()
    for trained_model, ivon in ((model, optimiser), (other, second)):
        with ivon.sampled_weights():
            loss_of(trained_model, 2).backward()
    for parameter in model.parameters():
        parameter.grad = parameter.grad * 0.5
    for parameter in other.parameters():
        parameter.grad *= 0.5
    optimiser.step()
    second.step()
    assert torch.equal(state_of(optimiser), state_of(second))


def test_outside_the_block_gradients_are_the_average_over_samples() -> None:
    model, optimiser = trained()
    gradients = []
    for sample in range(3):
        with optimiser.sampled_weights(sample):
            loss_of(model, 2).backward()
            gradients.append(model[0].weight.grad.clone())
    torch.testing.assert_close(model[0].weight.grad, torch.stack(gradients).mean(dim=0))


def test_a_loss_scaled_against_underflow_gives_the_same_step() -> None:
    model, plain = network(torch.float32), network(torch.float32)
    optimiser, other = (IVON(m.parameters(), **SETTINGS) for m in (model, plain))
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
    for step in range(4):
        optimiser.zero_grad()
        with optimiser.sampled_weights():
            scaler.scale(loss_of(model, step)).backward()
        scaler.unscale_(optimiser)
        scaler.step(optimiser)
        scaler.update()
    take_steps(plain, other, range(4))
    # Scaling by a power of two is exact.
    assert torch.equal(state_of(optimiser), state_of(other))


def test_a_step_that_the_scaler_skips_leaves_nothing_behind() -> None:
    model, plain = network(torch.float32), network(torch.float32)
    optimiser, other = (IVON(m.parameters(), **SETTINGS) for m in (model, plain))
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    for factor in (float("inf"), 1.0):
        optimiser.zero_grad()
        with optimiser.sampled_weights():
            (factor * scaler.scale(loss_of(model, 0))).backward()
        scaler.step(optimiser)
        scaler.update()
    take_steps(plain, other, range(1))
    assert torch.equal(state_of(optimiser), state_of(other))
