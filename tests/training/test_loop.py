"""The step loop: equality with a plain loop, its records, and what it leaves to the caller."""

from dataclasses import replace

import pytest
import torch
from small_tasks import TINY_IVON, family_of, one_parameter_run, train_until

from epigrok.config import AdamWConfig
from epigrok.posteriors import DiagonalGaussian
from epigrok.tasks import Batch
from epigrok.training import initial_state, learning_rate_scale, mean_loss, training_steps


def test_adamw_steps_equal_a_plain_loop() -> None:
    config = one_parameter_run(optim=AdamWConfig(lr=1e-2, weight_decay=0.5, clip_norm=0.1))
    state, family = initial_state(config), family_of(config)
    model = initial_state(config).model.double()
    # In float64: Adam's first updates are signs, which rounding decides where gradients vanish.
    state.model.double()
    decayed = [p for p in model.parameters() if p.ndim == 2]
    rest = [p for p in model.parameters() if p.ndim == 1]
    optimiser = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.5}, {"params": rest, "weight_decay": 0.0}],
        lr=1e-2,
        betas=(0.9, 0.98),
        eps=1e-8,
        foreach=False,
    )
    for _, record in zip(range(8), training_steps(state, family, config)):
        scale = learning_rate_scale(record.step - 1, config.schedule, config.num_steps)
        assert record.learning_rate_scale == scale
        for group in optimiser.param_groups:
            group["lr"] = 1e-2 * scale
        batch = family.training_batch(record.step - 1)
        logits = model(batch.tokens_BL)
        loss = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), batch.answers_BT, reduction="mean"
        )
        optimiser.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimiser.step()
        torch.testing.assert_close(record.loss, loss.detach())
        torch.testing.assert_close(record.gradient_norm, norm)
    for ours, plain in zip(state.model.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-9)


def test_it_takes_the_steps_that_are_left_and_counts_them() -> None:
    config = one_parameter_run(num_steps=5)
    state, family = initial_state(config), family_of(config)
    train_until(state, config, 2)
    assert [record.step for record in training_steps(state, family, config)] == [3, 4, 5]
    assert state.step == 5
    assert list(training_steps(state, family, config)) == []


def test_only_ivon_carries_a_posterior_and_tells_of_it() -> None:
    plain, variational = (
        initial_state(config)
        for config in (one_parameter_run(), one_parameter_run(optim=TINY_IVON))
    )
    assert plain.variational is plain.carried_posterior() is None
    assert plain.optimiser_facts() == {}
    posterior = variational.carried_posterior()
    assert isinstance(posterior, DiagonalGaussian)
    assert posterior.deviation.keys() == dict(variational.model.named_parameters()).keys()
    assert {"sigma_q50", "hessian_q95"} <= variational.optimiser_facts().keys()


def test_ivon_averages_as_many_samples_as_asked_for() -> None:
    one, three = (
        one_parameter_run(optim=replace(TINY_IVON, num_train_samples=number)) for number in (1, 3)
    )
    states = [initial_state(config) for config in (one, three, three)]
    for state, config in zip(states, (one, three, three), strict=True):
        train_until(state, config, 2)
    heads = [state.model.head_weight for state in states]
    assert torch.equal(heads[1], heads[2])
    assert not torch.equal(heads[0], heads[1])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_losses_are_summed_in_float32_or_wider(dtype: torch.dtype) -> None:
    answers = torch.zeros(64, 4, dtype=torch.int64)
    batch = Batch(answers, answers, torch.ones_like(answers, dtype=torch.bool))
    logits = torch.zeros(64, 4, 3, dtype=dtype)
    logits[..., 0] = 0.5
    loss = mean_loss(logits, batch)
    assert loss.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    exact = torch.log(torch.tensor(0.5, dtype=torch.float64).exp() + 2) - 0.5
    assert loss.item() == pytest.approx(exact.item(), rel=1e-6)
