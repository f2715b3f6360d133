"""Transforms of the spectral law against random matrices and each other."""

import numpy as np
import pytest

from epigrok.theory.spectral_transforms import log_G, log_M, log_R, with_atom


@pytest.mark.parametrize("lam", [0.2, 1.0, 2.5])
@pytest.mark.parametrize("s", [0.0, 0.7, 20.0])
def test_transforms_are_averages_over_a_large_random_matrix(lam: float, s: float) -> None:
    n = 1200
    d = round(lam * n)
    X = np.random.default_rng(1).normal(size=(n, d))
    nu = np.clip(np.linalg.eigvalsh(X.T @ X / n), 0.0, None)
    at = np.array(s), np.array(lam)
    # Fluctuations of linear statistics are of order 1/d.
    assert np.exp(log_M(*at)) == pytest.approx((nu * np.exp(-s * nu)).mean(), abs=0.01)
    assert np.exp(log_G(*at)) == pytest.approx(np.exp(-s * nu).mean(), abs=0.01)


def test_an_atom_is_added_with_its_weight() -> None:
    assert with_atom(np.array(-np.inf), np.array(4.0)) == pytest.approx(np.log(0.75))
    assert with_atom(np.array(np.log(0.5)), np.array(0.5)) == pytest.approx(np.log(0.5))


def test_the_risk_of_a_matched_start_is_one_at_time_zero() -> None:
    lam = np.array([0.3, 1.0, 3.0])
    assert log_R(np.zeros(3), lam) == pytest.approx(np.zeros(3), abs=1e-13)
