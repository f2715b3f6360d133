"""The table behind the noise-tolerance figure: limits of linear classifiers, and simulations."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import numpy as np

from epigrok.errors import UserError
from epigrok.theory.classifier.convex import (
    Features,
    largest_margin_student,
    logistic_student,
    logistic_student_of_clusters,
)
from epigrok.theory.classifier.least_squares import least_squares_student
from epigrok.theory.classifier.noise_tolerance import Student
from epigrok.theory.classifier.simulation import (
    ClassifierData,
    NotSeparableError,
    largest_margin_weights,
    least_squares_weights,
    logistic_weights,
    measured_student,
    sample_classifier_data,
    sample_clusters,
)
from epigrok.theory.inputs import Array
from epigrok.theory.summary import Table

MEANINGFUL, SUPERFLUOUS = 0.1, 1.0
"""Features per training input that carry the rule, and that carry nothing."""
FEATURES_DECAY = 1e-3
TIME_LAMBDA, TIME_DECAY, TIME_START = 2.0, 1e-3, 100.0
"""Weights per input, weight decay and squared length of the start along training time."""
CLUSTERS_LAMBDA, CLUSTERS_DECAY = 2.0, 1e-3
QUANTITIES = ("ratio", "accuracy", "train_accuracy", "tolerance_seen", "tolerance_watched")


def tolerance_table(d: int = 200, num_seeds: int = 5, seed: int = 0) -> Table:
    """Ratio of tolerances beside accuracy, in five settings.

    Columns: `panel` (data: more inputs per weight; features: those without meaning fade; clusters:
    inputs with one answer become alike; rule: labels with and without one; time: training from a
    large start), `family`, `quantity` (ratio, accuracy on fresh inputs, train_accuracy and both
    tolerances), `source` (limit, simulated), `x`, `value` and for simulations the `error` of the
    mean, else NaN.

    Args:
        d: Weights of the simulated classifiers, about.
        num_seeds: Classifiers simulated per point; 0 for none.
        seed: Of the first.
    """
    if d < 10 or num_seeds < 0:
        raise UserError(f"needs d >= 10 and num_seeds >= 0, not d = {d}, num_seeds = {num_seeds}")
    settings = (_data, _features, _clusters, _rule, _time)
    rows = [row for setting in settings for row in setting(d, num_seeds, seed)]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _data(d: int, num_seeds: int, seed: int) -> Iterable[dict[str, Any]]:
    for x in np.geomspace(0.1, 100.0, 46):
        yield from _limit("data", "largest margin", x, largest_margin_student(1 / x))
        yield from _limit("data", "least squares", x, least_squares_student(np.inf, 1 / x, 0.01))
    for x in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0):

        def draw(rng: np.random.Generator, x: float = x) -> ClassifierData:
            return sample_classifier_data(round(x * d), np.ones(d), d, 0.0, rng)

        simulate = _simulator("data", x, num_seeds, seed)
        yield from simulate("largest margin", draw, largest_margin_weights)
        yield from simulate(
            "least squares", draw, lambda data: least_squares_weights(data, 1e9, 0.01, np.zeros(d))
        )


def _features(d: int, num_seeds: int, seed: int) -> Iterable[dict[str, Any]]:
    n = round(2.5 * d)
    num_meaningful, num_superfluous = round(MEANINGFUL * n), round(SUPERFLUOUS * n)
    for x in np.geomspace(1.0, 1e-3, 25):
        kinds = [Features(MEANINGFUL), Features(SUPERFLUOUS, x**2, 0.0)]
        yield from _limit("features", "logistic", x, logistic_student(kinds, FEATURES_DECAY))
    for x in (1.0, 0.3, 0.1, 0.03, 0.01, 0.003):
        deviations = np.concatenate([np.ones(num_meaningful), np.full(num_superfluous, x)])

        def draw(rng: np.random.Generator, deviations: Array = deviations) -> ClassifierData:
            return sample_classifier_data(n, deviations, num_meaningful, 0.0, rng)

        simulate = _simulator("features", x, num_seeds, seed)
        yield from simulate("logistic", draw, lambda data: logistic_weights(data, FEATURES_DECAY))


def _clusters(d: int, num_seeds: int, seed: int) -> Iterable[dict[str, Any]]:
    for x in np.linspace(0.0, 6.0, 31):
        at = logistic_student_of_clusters(x, CLUSTERS_LAMBDA, CLUSTERS_DECAY)
        yield from _limit("clusters", "logistic", x, at)
    for x in (0.0, 1.0, 2.0, 3.0, 4.0, 5.0):

        def draw(rng: np.random.Generator, x: float = x) -> ClassifierData:
            return sample_clusters(d, round(CLUSTERS_LAMBDA * d), x, rng)

        simulate = _simulator("clusters", x, num_seeds, seed)
        yield from simulate("logistic", draw, lambda data: logistic_weights(data, CLUSTERS_DECAY))


def _rule(d: int, num_seeds: int, seed: int) -> Iterable[dict[str, Any]]:
    families = {"labels with a rule": 0.0, "labels without": 0.5}
    for family, flips in families.items():
        for x in np.linspace(0.05, 1.95, 39):
            yield from _limit("rule", family, x, largest_margin_student(1 / x, flips))
        for x in (0.25, 0.5, 0.75, 1.0, 1.25, 1.5):

            def draw(rng: np.random.Generator, x: float = x, p: float = flips) -> ClassifierData:
                return sample_classifier_data(round(x * d), np.ones(d), d, p, rng)

            simulate = _simulator("rule", x, num_seeds, seed)
            yield from simulate(family, draw, largest_margin_weights)


def _time(d: int, num_seeds: int, seed: int) -> Iterable[dict[str, Any]]:
    for x in np.geomspace(0.3, 3e4, 41):
        at = least_squares_student(x, TIME_LAMBDA, TIME_DECAY, TIME_START)
        yield from _limit("time", "least squares", x, at)

    def draw(rng: np.random.Generator) -> ClassifierData:
        return sample_classifier_data(round(d / TIME_LAMBDA), np.ones(d), d, 0.0, rng)

    for x in (1.0, 10.0, 100.0, 1e3, 1e4):

        def train(data: ClassifierData, x: float = x) -> Array:
            start = np.random.default_rng((seed, d)).standard_normal(d)
            start *= np.sqrt(TIME_START) / np.linalg.norm(start)
            return least_squares_weights(data, x, TIME_DECAY, start)

        yield from _simulator("time", x, num_seeds, seed)("least squares", draw, train)


def _limit(panel: str, family: str, x: float, at: Student) -> Iterable[dict[str, Any]]:
    for quantity, value in zip(QUANTITIES, _values(at)):
        yield _row(panel, family, quantity, "limit", x) | {"value": value, "error": np.nan}


def _simulator(
    panel: str, x: float, num_seeds: int, seed: int
) -> Callable[..., Iterable[dict[str, Any]]]:
    """Rows of a point: the mean over classifiers drawn and trained with the given functions.

    Draws that cannot be separated, rare ones close to the capacity, have no largest margin and are
    left out.
    """

    def simulate(
        family: str,
        draw: Callable[[np.random.Generator], ClassifierData],
        train: Callable[[ClassifierData], Array],
    ) -> Iterable[dict[str, Any]]:
        measured = []
        for index in range(num_seeds):
            data = draw(np.random.default_rng((seed, index)))
            with suppress(NotSeparableError):
                measured.append(_values(measured_student(data, train(data))))
        count = len(measured)
        for quantity, values in zip(QUANTITIES, zip(*measured)):
            error = np.std(values, ddof=1) / np.sqrt(count) if count > 1 else np.nan
            row = _row(panel, family, quantity, "simulated", x)
            yield row | {"value": float(np.mean(values)), "error": float(error)}

    return simulate


def _values(at: Student) -> tuple[float, ...]:
    accuracy = 1.0 - at.generalisation_error
    return at.ratio, accuracy, at.train_accuracy, at.tolerance_seen, at.tolerance_watched


def _row(panel: str, family: str, quantity: str, source: str, x: float) -> dict[str, Any]:
    return {"panel": panel, "family": family, "quantity": quantity, "source": source, "x": x}
