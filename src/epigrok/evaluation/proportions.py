"""Shares of runs, and differences between two shares, with intervals that hold for few runs."""

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """An estimate and the bounds that hold the true value in 95 % of repetitions, about."""

    estimate: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{self.estimate:.2f} ({self.lower:.2f} to {self.upper:.2f})".replace("-", "−")


def share(successes: int, number: int, confidence: float = CONFIDENCE) -> Interval:
    r"""A share and Wilson's score interval, $|\hat p - p| \le z \sqrt{p(1-p)/n}$ solved for p."""
    if not 0 <= successes <= number or number == 0:
        raise ValueError(f"{successes} of {number} is not a share")
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    estimate = successes / number
    centre = estimate + z**2 / (2 * number)
    spread = z * sqrt(estimate * (1 - estimate) / number + z**2 / (4 * number**2))
    scale = 1 + z**2 / number
    lower, upper = (centre - spread) / scale, (centre + spread) / scale
    # At the ends of the scale the bounds are exact, whatever rounding says.
    lower, upper = (0.0 if successes == 0 else lower), (1.0 if successes == number else upper)
    return Interval(estimate, lower, upper)


def difference(one: Interval, other: Interval) -> Interval:
    """The difference of two independent shares, by Newcombe's hybrid of their score intervals.

    Newcombe (1998), Statistics in Medicine 17, 873-890, method 10.
    """
    estimate = one.estimate - other.estimate
    below = sqrt((one.estimate - one.lower) ** 2 + (other.upper - other.estimate) ** 2)
    above = sqrt((one.upper - one.estimate) ** 2 + (other.estimate - other.lower) ** 2)
    return Interval(estimate, estimate - below, estimate + above)
