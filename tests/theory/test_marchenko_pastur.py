"""The spectral law against mpmath, random matrices and its own identities."""

import mpmath
import mpmath_reference as reference
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epigrok.theory.marchenko_pastur import (
    mp_atom,
    mp_edges,
    mp_expect,
    mp_log_G,
    mp_log_G_edge,
    mp_log_M,
    mp_log_M_rate,
    mp_log_R,
    mp_pdf,
    mp_resolvent,
    sample_spectrum,
)

aspect_ratios = st.floats(0.01, 4.0)
times = st.one_of(st.just(0.0), st.floats(-12.0, 9.0).map(lambda x: 10.0**x))


@pytest.mark.parametrize(
    ("lam", "s"),
    [
        *((float(lam), float(s)) for lam, s in zip(
            np.random.default_rng(5).uniform(0.01, 4.0, 8),
            10.0 ** np.random.default_rng(6).uniform(-3, 9, 8),
        )),
        (0.01, 1e9), (0.9, 1e9), (4.0, 1e9), (0.999, 1e5), (1.0 - 1e-8, 1.0), (1.0 - 1e-10, 1e3),
        (1.0, 1e9), (1.0 + 1e-9, 1e4), (1.0 + 1e-9, 1e9), (1.0 + 1e-9, 1e40), (1.0 + 1e-15, 1e20),
        (1e-17, 0.1), (1e-40, 30.0), (1.0, 1e280), (0.5, 1e200), (1e30, 1e-30), (1e300, 1e-299),
        (1.0 - 1e-16, 0.3), (1.0 + 1e-12, 0.7),
    ],
)  # fmt: skip
def test_transforms_equal_mpmath(lam: float, s: float) -> None:
    """Relative to themselves, which is stricter than the transforms relative to one."""
    with mpmath.workdps(60):
        log_G, log_R = (f(mpmath.mpf(s), lam) for f in (reference.log_G, reference.log_R))
        assert abs(mp_log_G(s, lam) / log_G - 1) < 3e-14
        assert abs(mp_log_R(s, lam) / log_R - 1) < 3e-14


def test_G_near_one_is_the_logarithm_of_its_atom() -> None:
    with mpmath.workdps(30):
        atom = float(mpmath.log(reference.atom(1.0 + 1e-9)))
    assert mp_log_G(1e40, 1.0 + 1e-9) == pytest.approx(atom, rel=1e-15)


@pytest.mark.parametrize("lam", [0.01, 0.37, 0.999, 1.0, 2.3])
@pytest.mark.parametrize("s", [1e-9, 1e-3, 0.7, 31.0, 1e4, 1e9])
def test_log_M_and_its_rate_equal_mpmath(lam: float, s: float) -> None:
    with mpmath.workdps(40):
        z = 2 * mpmath.sqrt(mpmath.mpf(lam)) * mpmath.mpf(s)
        scaled = mpmath.besseli(1, z) * mpmath.exp(-z)
        edge = (1 - mpmath.sqrt(mpmath.mpf(lam))) ** 2
        log_M = mpmath.log(2 * scaled / z) - edge * s
        drop = 1 - mpmath.besseli(2, z) / mpmath.besseli(1, z)
        rate = float(edge + 2 * mpmath.sqrt(mpmath.mpf(lam)) * drop)
    assert mp_log_M(s, lam) == pytest.approx(float(log_M), rel=2e-15, abs=1e-14)
    assert mp_log_M_rate(s, lam) == pytest.approx(rate, rel=1e-11)


@given(aspect_ratios, times)
def test_M_never_exceeds_G_and_both_start_at_one(lam: float, s: float) -> None:
    log_G, log_M = mp_log_G(s, lam), mp_log_M(s, lam)
    assert np.isfinite([log_G, log_M]).all()
    assert log_M <= log_G <= 0.0
    assert mp_log_G(0.0, lam) == mp_log_M(0.0, lam) == 0.0


@given(aspect_ratios, st.floats(-2.0, 4.0).map(lambda x: 10.0**x))
def test_M_is_minus_the_derivative_of_G(lam: float, s: float) -> None:
    h = 0.02 * s / (1.0 + s)
    offsets = np.array([-4, -3, -2, -1, 1, 2, 3, 4])
    weights = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
    log_G = mp_log_G(s, lam)
    slope = (weights * np.expm1(mp_log_G(s + h * offsets, lam) - log_G)).sum() / h
    assert -slope == pytest.approx(np.exp(mp_log_M(s, lam) - log_G), abs=1e-10)


@given(aspect_ratios, st.floats(-6.0, 2.0).map(lambda x: 10.0**x))
def test_resolvent_equals_its_integral(lam: float, gamma: float) -> None:
    by_quadrature = mp_expect(lambda nu: 1.0 / (nu + gamma), lam)
    assert mp_resolvent(lam, gamma) == pytest.approx(by_quadrature, rel=1e-12)


@given(aspect_ratios)
def test_moments_and_mass(lam: float) -> None:
    moments = mp_expect(lambda nu: np.stack([nu**0, nu, nu**2, nu**3]), lam)
    assert moments == pytest.approx([1, 1, 1 + lam, 1 + 3 * lam + lam**2], rel=1e-13)


@pytest.mark.parametrize("lam", [0.2, 0.9, 1.7])
def test_density_integrates_to_the_continuous_mass(lam: float) -> None:
    low, high = mp_edges(lam)
    # Midpoints in the angle of the semicircle, where the density is smooth.
    angle = (np.arange(20000) + 0.5) * np.pi / 20000
    nu = low + (high - low) * np.sin(angle / 2) ** 2
    jacobian = (high - low) * np.sin(angle / 2) * np.cos(angle / 2)
    mass = (mp_pdf(nu, lam) * jacobian).sum() * np.pi / 20000
    assert mass == pytest.approx(1.0 - mp_atom(lam), rel=1e-12)
    assert mp_pdf([low / 2, high * 1.01, -1.0, 0.0], lam).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(("lam", "s", "error"), [(0.99, 1.0, 2e-2), (0.9, 10.0, 2e-4),
                                                  (0.9, 100.0, 2e-6), (0.1, 100.0, 4e-5),
                                                  (1.5, 10.0, 1e-4), (0.5, 1e9, 1e-9)])  # fmt: skip
def test_edge_formula_has_its_stated_accuracy(lam: float, s: float, error: float) -> None:
    assert abs(mp_log_G_edge(s, lam) - mp_log_G(s, lam)) < error


def test_edge_formula_has_no_value_at_time_zero() -> None:
    assert np.isnan(mp_log_G_edge([0.0, 1e-6], 0.5)).all()


@pytest.mark.parametrize("lam", [0.3, 0.9, 1.5])
def test_closed_forms_equal_random_matrices(lam: float) -> None:
    n, s, rng = 400, np.array([0.3, 1.0, 4.0]), np.random.default_rng(11)
    d = round(lam * n)
    draws = []
    for _ in range(12):
        X = rng.standard_normal((n, d))
        gram = X.T @ X / n if d <= n else X @ X.T / n
        nu = np.concatenate([np.linalg.eigvalsh(gram), np.zeros(max(0, d - n))])
        modes = np.exp(-s[:, None] * nu)
        draws.append([modes.mean(axis=1), (nu * modes).mean(axis=1)])
    mean, error = np.mean(draws, axis=0), np.std(draws, axis=0, ddof=1) / np.sqrt(len(draws))
    exact = np.exp([mp_log_G(s, lam), mp_log_M(s, lam)])
    # Finite matrices differ from the limit by order 1/d on top of their scatter.
    assert (np.abs(mean - exact) < 4.0 * error).all()


@pytest.mark.parametrize(("n", "d"), [(60, 40), (30, 45), (7, 7), (1, 3), (3, 1)])
def test_sampled_spectra_have_the_law_of_real_ones(n: int, d: int) -> None:
    rng = np.random.default_rng(3)
    sampled = np.array([sample_spectrum(n, d, rng) for _ in range(400)])
    real = []
    for _ in range(400):
        X = rng.standard_normal((n, d))
        real.append(np.maximum(np.linalg.eigvalsh(X.T @ X / n), 0.0))
    assert sampled.shape == (400, d)
    assert (np.diff(sampled, axis=1) >= 0).all()
    assert (sampled[:, : max(0, d - n)] == 0).all()
    for statistic in (lambda x: x.mean(axis=1), lambda x: (x**2).mean(axis=1),
                      lambda x: x[:, max(0, d - n)], lambda x: x[:, -1]):  # fmt: skip
        a, b = statistic(sampled), statistic(np.array(real))
        error = np.sqrt((a.var() + b.var()) / 400)
        assert abs(a.mean() - b.mean()) < 4.0 * error


def test_scalars_give_floats_and_arrays_keep_their_shape() -> None:
    assert isinstance(mp_log_G(1, 0.5), float)
    assert isinstance(mp_log_M(np.float64(1.0), 0.5), float)
    assert isinstance(mp_edges(0.5)[0], float)
    assert mp_log_G([[1.0, 2.0, 3.0]], [[0.5], [0.9]]).shape == (2, 3)
    many = mp_log_G(np.linspace(0, 9, 5000), 0.5)
    assert many[4097] == pytest.approx(mp_log_G(4097 * 9 / 4999, 0.5), rel=1e-14)
