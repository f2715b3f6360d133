"""Times, delays and bounds over the whole range of (lambda, gamma, eps/C0), against mpmath."""

import math

import mpmath
import mpmath_reference as reference
import numpy as np
import pytest
from mpmath import mpf

from epigrok.theory.delay import crossings, delay_bounds, delay_leading, event_levels
from epigrok.theory.excess_risk import LARGEST_TIME, is_never_crossed

ACCURACY = 5e-13
"""Relative, of every time and delay; docs/theory.md states it."""
NORMAL = 1e-290
"""Results below have fewer digits: they are close to the smallest floats."""
Point = tuple[float, float, float]


def random_point(rng: np.random.Generator) -> Point:
    """Every order of magnitude, and more often than that the neighbourhood of one."""
    near_one = 1.0 + float(rng.choice([-1, 1])) * 10.0 ** rng.uniform(-15.9, -1)
    lam = rng.choice(
        [10.0 ** rng.uniform(-300, 300), rng.uniform(0.01, 4.0), near_one, 1.0,
         10.0 ** rng.uniform(-20, 3)]
    )  # fmt: skip
    gamma = rng.choice([0.0, 10.0 ** rng.uniform(-300, 300), 10.0 ** rng.uniform(-12, 4)])
    eps = rng.choice([10.0 ** rng.uniform(-306.7, 0), 10.0 ** rng.uniform(-12, 0),
                      0.9098 - 10.0 ** rng.uniform(-12, -1)])  # fmt: skip
    return float(lam), float(gamma), float(eps)


def worst_error(point: Point) -> float:
    """Largest relative error at a point; fails where a bound or an infinity is wrong."""
    lam, gamma, eps = point
    times, worst = crossings(lam, gamma, eps)._asdict(), 0.0
    for event, level in zip(("peak", "grok"), map(float, event_levels(eps))):
        emp, gen = times[f"s_emp_{event}"], times[f"s_gen_{event}"]
        delta, bounds = times[f"delta_s_{event}"], delay_bounds(level, lam, gamma)
        if level >= 1.0:
            assert np.isnan([emp, gen, delta, *bounds]).all()
            continue
        assert 0.0 <= bounds.lower <= delta <= bounds.upper, (point, event)
        assert not bounds.upper > delay_leading(lam, gamma), (point, event)
        if min(emp, gen) < NORMAL:
            continue
        # Digits for a difference of times, which agree in all but the last of them.
        lost = math.log10(emp) - math.log10(max(delta, 1e-300)) if 0 <= delta < emp else 0.0
        with mpmath.workdps(45 + int(1.1 * max(lost, 0.0))):
            exact_emp = reference.crossing(level, "emp", lam, gamma, emp)
            worst = max(worst, error(emp, exact_emp))
            if gen == math.inf:
                if not is_never_crossed(level, "gen", lam, gamma):
                    left = reference.log_G(mpf(LARGEST_TIME), lam) - mpf(gamma) * LARGEST_TIME
                    assert left > mpmath.log(mpf(level)), (point, event)
                continue
            exact_gen = reference.crossing(level, "gen", lam, gamma, gen)
            worst = max(worst, error(gen, exact_gen))
            if delta > NORMAL:
                worst = max(worst, error(delta, exact_gen - exact_emp))
            else:
                assert exact_gen - exact_emp < 2 * NORMAL, (point, event)
    return worst


def error(value: float, exact: mpf) -> float:
    return float(abs(mpf(value) / exact - 1))


@pytest.mark.parametrize(
    "point",
    [
        (1e-12, 0.0, 1e-3), (1e-17, 0.0, 1e-3), (1e-40, 1e-3, 0.9), (0.3, 1e8, 1e-3),
        (1.0, 0.0, 1e-140), (1.0, 0.0, 1e-300), (1.0, 1e-305, 1e-200), (1e300, 1.0, 1e-3),
        (1.0 + 1e-9, 0.0, 1e-8), (1.0 + 1e-9, 1e-20, 1e-30), (1.0 - 1e-16, 0.0, 1e-100),
        (1.5, 1e-308, 1e-3), (1e-300, 1e300, 1e-300), (1e300, 1e300, 1e-300),
    ],
    ids=str,
)  # fmt: skip
def test_corners_equal_mpmath(point: Point) -> None:
    assert worst_error(point) < ACCURACY


def test_random_points_equal_mpmath() -> None:
    rng = np.random.default_rng(20)
    for point in [random_point(rng) for _ in range(15)]:
        assert worst_error(point) < ACCURACY, point


@pytest.mark.slow
def test_six_hundred_random_points_equal_mpmath() -> None:
    rng = np.random.default_rng(21)
    errors = {point: worst_error(point) for point in (random_point(rng) for _ in range(600))}
    worst = max(errors, key=lambda point: errors[point])
    print(f"largest relative error {errors[worst]:.2g} at {worst}")
    assert errors[worst] < ACCURACY
