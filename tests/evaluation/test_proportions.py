"""Shares and their differences, against published values and against all outcomes."""

from math import comb

import numpy as np
import pytest

from epigrok.evaluation.proportions import difference, share


@pytest.mark.parametrize(
    ("one", "other", "lower", "upper"),
    [
        # Newcombe (1998), Table II, method 10.
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 20), -0.1611, 0.2775),
        ((0, 10), (0, 10), -0.2775, 0.2775),
        ((10, 10), (0, 20), 0.6791, 1.0),
        ((10, 10), (0, 10), 0.6075, 1.0),
    ],
)
def test_differences_are_those_of_newcombe(
    one: tuple[int, int], other: tuple[int, int], lower: float, upper: float
) -> None:
    found = difference(share(*one), share(*other))
    assert found.estimate == pytest.approx(one[0] / one[1] - other[0] / other[1])
    assert (found.lower, found.upper) == (
        pytest.approx(lower, abs=5e-5),
        pytest.approx(upper, abs=5e-5),
    )


def test_the_bounds_of_a_share_solve_the_score_equation() -> None:
    for successes, number in ((1, 8), (5, 16), (63, 64)):
        found = share(successes, number)
        for bound in (found.lower, found.upper):
            deviation = 1.959963984540054 * (bound * (1 - bound) / number) ** 0.5
            assert abs(found.estimate - bound) == pytest.approx(deviation)


@pytest.mark.parametrize(("successes", "number"), [(-1, 4), (5, 4), (0, 0)])
def test_what_is_no_share_is_refused(successes: int, number: int) -> None:
    with pytest.raises(ValueError, match="is not a share"):
        share(successes, number)


def probabilities(number: int, p: np.ndarray) -> np.ndarray:
    """P(k of number | p), for every k and p."""
    return np.array([comb(number, k) * p**k * (1 - p) ** (number - k) for k in range(number + 1)])


@pytest.mark.parametrize("number", [8, 16])
def test_differences_are_covered_as_often_as_they_should_be(number: int) -> None:
    # Every pair of shares on a grid, every outcome, weighted by its probability.
    p = np.linspace(0.02, 0.98, 33)
    of_k = probabilities(number, p)
    shares = [share(k, number) for k in range(number + 1)]
    coverage = np.zeros((len(p), len(p)))
    for k, one in enumerate(shares):
        for m, other in enumerate(shares):
            found = difference(one, other)
            truth = p[:, None] - p
            is_inside = (found.lower <= truth) & (truth <= found.upper)
            coverage += np.outer(of_k[k], of_k[m]) * is_inside
    assert coverage.mean() > 0.945
    # Newcombe found 0.87 as the lowest; it lies where one share is near 0 and the other near 1.
    assert coverage.min() > 0.87
    # Equal shares: a difference is concluded in at most 8 % of the cases, wherever they lie.
    assert np.diag(coverage).min() > 0.92


def test_fewer_than_eight_runs_cannot_show_what_eight_can() -> None:
    # Half the runs against all of them: seen with eight and more, not with fewer.
    for number, is_seen in ((4, False), (8, True), (16, True)):
        found = difference(share(number, number), share(number // 2, number))
        assert (found.lower > 0) == is_seen
