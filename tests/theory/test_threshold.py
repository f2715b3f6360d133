"""Threshold probabilities and closures against mpmath and Monte Carlo."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epigrok.theory import threshold

LN2 = float(np.log(2.0))
logarithmic = st.floats(-6.0, 3.0).map(lambda x: 10.0**x)


def reference(m: float, v: float, eps: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    m_, edge, spread = abs(mpmath.mpf(m)), mpmath.sqrt(eps), mpmath.sqrt(2 * mpmath.mpf(v))
    near, far = (edge - m_) / spread, (edge + m_) / spread
    inside = (mpmath.erfc(-near) - mpmath.erfc(far)) / 2
    return inside, (mpmath.erfc(near) + mpmath.erfc(far)) / 2


def entropy_reference(p: mpmath.mpf, q: mpmath.mpf) -> mpmath.mpf:
    smaller = min(p, q)
    if smaller <= 0:
        return mpmath.mpf(0)
    return -smaller * mpmath.log(smaller) - (1 - smaller) * mpmath.log1p(-smaller)


@given(st.floats(-20.0, 20.0), logarithmic, logarithmic)
def test_interval_probability_keeps_relative_accuracy(m: float, v: float, eps: float) -> None:
    inside, outside = threshold.interval_prob(m, v, eps)
    with mpmath.workdps(60):
        exact = [float(x) for x in reference(m, v, eps)]
    assert [inside, outside] == pytest.approx(exact, rel=2e-12, abs=1e-290)


@given(logarithmic, logarithmic)
def test_zero_mean_interval_is_the_closure(v: float, eps: float) -> None:
    inside, _ = threshold.interval_prob(0.0, v, eps)
    assert inside == pytest.approx(threshold.accuracy_closure(v / 2, eps), rel=1e-14)


def test_certain_residuals_are_right_or_wrong() -> None:
    inside, outside = threshold.interval_prob([0.0, 1.0, -1.0, 1.1], 0.0, 1.0)
    assert inside.tolist() == [1, 1, 1, 0]
    assert outside.tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("m2", "v"),
    [(1e-6, 1e3), (1e3, 1e-6), (0.5, 0.5), (30.0, 0.01), (0.01, 30.0), (0.02, 0.01), (4.0, 1e3)],
)
def test_two_component_closure_equals_mpmath(m2: float, v: float) -> None:
    with mpmath.workdps(25):
        spread, sigma = mpmath.sqrt(m2), mpmath.sqrt(v)
        points = {mpmath.mpf(0), *(k * spread for k in (1, 2, 4, 8, 14))}
        points |= {
            max(mpmath.mpf(0), 1 + k * sigma) for k in (-9, -6, -4, -2, -1, 0, 1, 2, 4, 6, 9)
        }
        exact = mpmath.quad(
            lambda m: 2 * mpmath.npdf(m, 0, spread) * entropy_reference(*reference(m, v, 1)),
            sorted(points),
        )
    assert threshold.eu_closure2(m2, v, 1.0) == pytest.approx(float(exact), rel=1e-11)


@given(logarithmic, logarithmic, logarithmic)
def test_two_component_closure_stays_in_its_bounds(m2: float, v: float, eps: float) -> None:
    value = threshold.eu_closure2(m2, v, eps)
    # Jensen: entropy is concave, and the mean success probability is that of the total variance.
    assert 0.0 <= value <= threshold.eu_closure((m2 + v) / 2, eps) * (1 + 1e-12)


def test_two_component_closure_at_its_ends() -> None:
    assert threshold.eu_closure2(0.0, 1.0, 1.0) == threshold.eu_closure(0.5, 1.0)
    assert threshold.eu_closure2(1.0, 0.0, 1.0) == 0.0
    assert threshold.eu_closure2(0.0, 0.0, 1.0) == 0.0


@pytest.mark.parametrize(
    ("rho", "peak", "height"),
    [(0.95, 1.1005, 0.9993), (0.5, 1.2534, 0.919), (0.1, 2.4666, 0.555), (0.02, 6.4067, 0.278)],
)
def test_peak_of_the_two_component_closure(rho: float, peak: float, height: float) -> None:
    risks = np.geomspace(0.5 * peak, 2.0 * peak, 4001)
    values = threshold.eu_closure2(2 * risks * (1 - rho), 2 * risks * rho, 1.0)
    assert risks[np.argmax(values)] == pytest.approx(peak, rel=1e-3)
    assert values.max() / LN2 == pytest.approx(height, abs=1e-3)


def test_the_paper_closure_peaks_at_the_peak_level() -> None:
    around = threshold.PEAK_LEVEL * np.array([0.99, 1.0, 1.01])
    values = threshold.eu_closure(around, 1.0)
    assert values[1] == pytest.approx(LN2, rel=1e-15)
    assert values[1] > values[0]
    assert values[1] > values[2]


def test_closures_at_the_ends_of_the_risk() -> None:
    assert threshold.accuracy_closure([0.0, np.inf], 1.0).tolist() == [1.0, 0.0]
    assert threshold.eu_closure([0.0, np.inf], 1.0).tolist() == [0.0, 0.0]


@given(st.floats(0.0, 1.0))
def test_binary_entropy_is_symmetric_and_bounded(p: float) -> None:
    assert 0.0 <= threshold.binary_entropy(p) <= LN2
    assert threshold.binary_entropy(p, 1 - p) == threshold.binary_entropy(1 - p, p)


def test_binary_entropy_uses_the_complement_it_is_given() -> None:
    tiny = 1e-178
    exact = -tiny * np.log(tiny) + tiny
    assert threshold.binary_entropy(1.0, tiny) == pytest.approx(exact, rel=1e-15, abs=0.0)


def test_gaussian_uncertainty_equals_sampled_mutual_information() -> None:
    rng, v, noise = np.random.default_rng(2), 2.0, 0.7
    f = np.sqrt(v) * rng.standard_normal(200_000)
    y = f + np.sqrt(noise) * rng.standard_normal(f.size)
    log_ratio = -0.5 * (y - f) ** 2 / noise + 0.5 * y**2 / (v + noise) + 0.5 * np.log1p(v / noise)
    error = log_ratio.std() / np.sqrt(f.size)
    assert abs(log_ratio.mean() - threshold.gaussian_eu(v, noise)) < 4.0 * error


def test_trace_closure_overestimates_by_its_stated_gap() -> None:
    rng, d, noise = np.random.default_rng(4), 100, 3.0
    variances = rng.uniform(0.5, 1.5, d)
    x = rng.standard_normal((200_000, d))
    sampled = threshold.gaussian_eu(x**2 @ variances, noise)
    error = sampled.std() / np.sqrt(len(x))
    gap = threshold.trace_eu(variances.sum(), noise) - sampled.mean()
    predicted = 0.5 * (variances**2).sum() / (noise + variances.sum()) ** 2
    assert gap > 4.0 * error
    assert gap == pytest.approx(predicted, rel=0.1)
