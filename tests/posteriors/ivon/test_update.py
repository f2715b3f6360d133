"""IVON's equations against the same written out with plain numbers."""

import math

import pytest
import torch

from epigrok.posteriors.ivon.update import perturb, sigma, update


def state_of(mean: float, momentum: float, hessian: float, step: int) -> dict[str, torch.Tensor]:
    wide = {"mean": mean, "momentum": momentum, "hessian": hessian}
    buffers = {name: torch.tensor([value], dtype=torch.float64) for name, value in wide.items()}
    return {**buffers, "step": torch.tensor(step)}


def test_the_width_is_that_of_the_posterior() -> None:
    width = sigma(torch.tensor([0.2], dtype=torch.float64), ess=50.0, weight_decay=0.1)
    assert width.item() == pytest.approx(1 / math.sqrt(50.0 * 0.3))


def test_a_sample_depends_on_key_and_step_and_tells_its_deviation() -> None:
    draws = {}
    for key in (1, 2):
        for step in (0, 1):
            state, live = state_of(3.0, 0.0, 0.2, step), torch.zeros(1, dtype=torch.float64)
            deviation = torch.zeros_like(live)
            perturb(live, deviation, state, (50.0, 0.1), key)
            assert live.item() == pytest.approx(3.0 + deviation.item())
            draws[key, step] = live.item()
    assert len(set(draws.values())) == 4


def test_an_update_is_the_equation() -> None:
    m, g, h, step = 0.5, 0.1, 0.2, 3
    ess, decay, beta_1, beta_2, radius, lr = 50.0, 0.1, 0.9, 0.95, 10.0, 0.3
    gradient, deviation = 0.7, 0.06
    state = state_of(m, g, h, step)
    live = torch.zeros(1, dtype=torch.float64)
    buffers = (live, torch.tensor([gradient]).double(), torch.tensor([deviation]).double())
    update(buffers, state, torch.tensor(lr), (ess, decay, beta_1, beta_2, radius))
    h_hat = gradient * deviation * ess * (h + decay)
    g_new = beta_1 * g + (1 - beta_1) * gradient
    h_new = (
        beta_2 * h + (1 - beta_2) * h_hat + 0.5 * (1 - beta_2) ** 2 * (h - h_hat) ** 2 / (h + decay)
    )
    m_new = m - lr * (g_new / (1 - beta_1**4) + decay * m) / (h_new + decay)
    # Gradient, deviation and learning rate came in single precision.
    assert state["hessian"].item() == pytest.approx(h_new, rel=1e-7)
    assert state["momentum"].item() == pytest.approx(g_new, rel=1e-7)
    assert live.item() == state["mean"].item() == pytest.approx(m_new, rel=1e-6)
    assert state["step"].item() == 4
