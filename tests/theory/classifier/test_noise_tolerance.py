"""Noise tolerance of linear classifiers: closed forms, known laws, invariances, simulations."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtri
from scipy.stats import norm

from epigrok.errors import UserError
from epigrok.theory.classifier.convex import (
    Features,
    largest_margin_student,
    logistic_student,
    logistic_student_of_clusters,
)
from epigrok.theory.classifier.least_squares import least_squares_student
from epigrok.theory.classifier.noise_tolerance import (
    Fields,
    Student,
    fresh_tolerance,
    teacher_margins,
    tolerance,
)
from epigrok.theory.classifier.simulation import (
    ClassifierData,
    largest_margin_weights,
    least_squares_weights,
    logistic_weights,
    measured_student,
    measured_tolerance,
    sample_classifier_data,
    sample_clusters,
)

C = np.sqrt(2 / np.pi)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
@pytest.mark.parametrize(
    ("overlap", "flips"), [(0.0, 0.0), (0.3, 0.2), (0.999999, 0.0), (1.0, 0.0)]
)
def test_fresh_inputs_tolerate_the_same_whatever_was_learnt(
    overlap: float, flips: float, level: float
) -> None:
    margins = teacher_margins(overlap, flips)
    assert margins.weights.sum() == pytest.approx(1.0, rel=1e-9)
    assert tolerance(margins, level) == pytest.approx(fresh_tolerance(level), rel=1e-8)


def test_tolerance_is_where_drawn_noise_leaves_the_stated_agreement() -> None:
    """Noise drawn on the weights themselves, kappa from the answers before and after."""
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal(400), rng.standard_normal((4000, 400))
    s = measured_tolerance(x, w)
    assert s == pytest.approx(fresh_tolerance(), rel=0.1)
    before = x @ w > 0
    kappas = []
    for _ in range(60):
        after = x @ (w * (1 + s * rng.standard_normal(400))) > 0
        chance = before.mean() * after.mean() + (1 - before.mean()) * (1 - after.mean())
        kappas.append(((before == after).mean() - chance) / (1 - chance))
    assert abs(np.mean(kappas) - 0.9) < 4 * np.std(kappas) / np.sqrt(60)


def test_inputs_on_the_boundary_tolerate_nothing() -> None:
    on_boundary = Fields(np.array([0.0, 3.0]), np.array([0.2, 0.8]))
    assert tolerance(on_boundary) == 0.0
    assert Student(0.5, 1.0, 0.1, 1.0, 0.0, 0.1).ratio == np.inf


@pytest.mark.parametrize("per_weight", [0.2, 0.7])
@pytest.mark.parametrize("flips", [0.0, 0.25, 0.5])
def test_least_squares_interpolates_with_one_margin(per_weight: float, flips: float) -> None:
    """More weights than inputs, no decay, to the end: every margin is one."""
    found = least_squares_student(np.inf, 1 / per_weight, 0.0, 0.0, flips)
    c2 = ((1 - 2 * flips) * C) ** 2
    norm2 = c2 * per_weight + (1 - c2) * per_weight / (1 - per_weight)
    assert found.norm == pytest.approx(np.sqrt(norm2), rel=1e-9)
    assert found.overlap == pytest.approx(np.sqrt(c2) * per_weight / found.norm, abs=1e-9)
    assert found.train_accuracy == pytest.approx(1.0)
    assert found.tolerance_seen == pytest.approx(1 / (-ndtri(0.05) * found.norm), rel=1e-6)


@pytest.mark.parametrize("per_weight", [0.3, 4.0])
def test_the_first_step_and_strong_decay_are_hebbs_rule(per_weight: float) -> None:
    """Weights along X^T y: overlap c/sqrt(c^2 + lam), margins shifted by lam/sqrt(c^2 + lam)."""
    lam = 1 / per_weight
    overlap, shift = C / np.sqrt(C**2 + lam), lam / np.sqrt(C**2 + lam)
    margins = teacher_margins(overlap, 0.0, -shift)
    expected = tolerance(Fields(margins.values + shift, margins.weights))
    for found in (
        least_squares_student(1e-6, lam, 0.0),
        least_squares_student(np.inf, lam, 1e7),
        logistic_student([Features(lam)], 1e7),
    ):
        assert found.overlap == pytest.approx(overlap, rel=1e-5)
        assert found.tolerance_seen == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("per_weight", [0.3, 1.0, 1.8])
def test_the_largest_margin_without_a_rule_is_gardners(per_weight: float) -> None:
    found = largest_margin_student(1 / per_weight, 0.5)
    margin = 1 / found.norm
    square = quad(lambda t: (t + margin) ** 2 * np.exp(-(t**2) / 2), -margin, np.inf)[0]
    assert per_weight * square / np.sqrt(2 * np.pi) == pytest.approx(1.0, rel=1e-7)
    assert found.overlap == 0.0
    assert found.generalisation_error == 0.5


def test_the_largest_margin_learns_at_its_known_rate() -> None:
    """Half an error per input and weight (Opper & Kinzel): 0.5005 d/n."""
    assert 300 * largest_margin_student(1 / 300).generalisation_error == pytest.approx(0.5005, 1e-3)


def test_little_decay_comes_close_to_the_largest_margin() -> None:
    """As slowly as the logarithm of the decay."""
    limit = largest_margin_student(0.5)
    gaps = [
        abs(logistic_student([Features(0.5)], gamma).ratio - limit.ratio)
        for gamma in (1e-3, 1e-6, 1e-9)
    ]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.02


def test_equal_features_may_be_split_and_scaled() -> None:
    whole = logistic_student([Features(0.5)], 0.01, 0.1)
    split = logistic_student([Features(0.2, 1.0, 0.4), Features(0.3, 1.0, 0.6)], 0.01, 0.1)
    scaled = logistic_student([Features(0.5, 9.0)], 0.09, 0.1)
    assert split == pytest.approx(whole, rel=1e-7)
    assert scaled == pytest.approx(whole, rel=1e-7)


def test_features_that_have_faded_are_not_there() -> None:
    alone = logistic_student([Features(0.1)], 1e-3)
    faded = logistic_student([Features(0.1), Features(1.0, 1e-12, 0.0)], 1e-3)
    assert faded == pytest.approx(alone, rel=1e-5)


Training = Callable[[ClassifierData], np.ndarray]
D = 240


def start(length2: float) -> np.ndarray:
    direction = np.random.default_rng(99).standard_normal(D)
    return np.sqrt(length2) * direction / np.linalg.norm(direction)


SETTINGS: dict[str, tuple[float, float, Training, Student]] = {
    "least squares, early, few inputs": (
        0.6, 0.0, lambda x: least_squares_weights(x, 4.0, 0.05, start(0)),
        least_squares_student(4.0, 1 / 0.6, 0.05),
    ),
    "least squares, large start": (
        0.5, 0.0, lambda x: least_squares_weights(x, 300.0, 0.001, start(50)),
        least_squares_student(300.0, 2.0, 0.001, 50.0),
    ),
    "least squares, flipped labels": (
        2.5, 0.1, lambda x: least_squares_weights(x, 1e6, 0.2, start(0)),
        least_squares_student(np.inf, 0.4, 0.2, 0.0, 0.1),
    ),
    "logistic": (3.0, 0.0, lambda x: logistic_weights(x, 3e-3),
                 logistic_student([Features(1 / 3)], 3e-3)),
    "logistic, flipped labels": (
        2.0, 0.2, lambda x: logistic_weights(x, 0.05), logistic_student([Features(0.5)], 0.05, 0.2),
    ),
    "largest margin": (1.6, 0.0, largest_margin_weights, largest_margin_student(1 / 1.6)),
    "largest margin, no rule": (0.8, 0.5, largest_margin_weights,
                                largest_margin_student(1.25, 0.5)),
}  # fmt: skip


@pytest.mark.parametrize("setting", SETTINGS)
def test_limits_equal_simulations(setting: str) -> None:
    per_weight, flips, train, limit = SETTINGS[setting]
    assert_equal_simulations(round(per_weight * D), np.ones(D), D, (flips, train, limit))


def test_limits_equal_simulations_with_two_kinds_of_features() -> None:
    n, size = 400, 0.1
    deviations = np.concatenate([np.ones(60), np.full(400, size)])
    limit = logistic_student([Features(0.15), Features(1.0, size**2, 0.0)], 1e-3)
    assert_equal_simulations(n, deviations, 60, (0.0, lambda x: logistic_weights(x, 1e-3), limit))


@pytest.mark.parametrize(("separation", "lam"), [(0.0, 1.5), (1.2, 0.8), (2.5, 2.0)])
def test_limits_equal_simulations_of_clusters(separation: float, lam: float) -> None:
    limit = logistic_student_of_clusters(separation, lam, 2e-3)
    assert limit.generalisation_error == pytest.approx(norm.cdf(-separation * limit.overlap))
    draws = []
    for seed in range(12):
        data = sample_clusters(round(D / lam), D, separation, np.random.default_rng((8, seed)))
        found = measured_student(data, logistic_weights(data, 2e-3))
        draws.append([*found, found.ratio])
    assert_close(np.array(draws), limit, D)


def test_far_clusters_need_no_training_inputs_of_their_own() -> None:
    """What was seen and what is fresh look alike: both tolerances are those of the centres."""
    far = logistic_student_of_clusters(30.0, 0.5, 1e-3)
    assert far.overlap == pytest.approx(1.0, abs=1e-2)
    assert far.ratio == pytest.approx(1.0, abs=2e-3)
    assert far.generalisation_error < 1e-12


def assert_equal_simulations(
    n: int, deviations: np.ndarray, num_teacher: int, case: tuple[float, Training, Student]
) -> None:
    """Within four standard errors of twelve draws, and what one weight in so many can change."""
    flips, train, limit = case
    draws = []
    for seed in range(12):
        rng = np.random.default_rng((7, seed))
        data = sample_classifier_data(n, deviations, num_teacher, flips, rng)
        found = measured_student(data, train(data))
        draws.append([*found, found.ratio])
    assert_close(np.array(draws), limit, num_teacher)


def assert_close(draws: np.ndarray, limit: Student, size: int) -> None:
    mean, spread = draws.mean(axis=0), draws.std(axis=0, ddof=1)
    expected = np.array([*limit, limit.ratio])
    error = spread / np.sqrt(len(draws))
    assert (np.abs(mean - expected) < 4 * error + 4 * expected / size).all()


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda: fresh_tolerance(1.0), "level must be between 0 and 1, not 1.0"),
        (lambda: least_squares_student(1.0, 0.5, 0.0, flips=0.6), "flips must be between 0 and"),
        (lambda: least_squares_student(0.0, 0.5, 0.0), "weights of length zero"),
        (lambda: least_squares_student(1.0, -1.0, 0.0), "lam must be positive, not -1.0"),
        (lambda: largest_margin_student(0.5, 0.5), "lam above 0.5, not at 0.5"),
        (lambda: largest_margin_student(1.0, 0.2), "flips of 0 and 0.5, not 0.2"),
        (lambda: logistic_student([Features(0.5)], 0.0), "gamma must be positive, not 0.0"),
        (lambda: logistic_student([Features(0.5, 1.0, 0.7)], 0.1), "must add up to 1, not 0.7"),
        (lambda: logistic_student([Features(0.5, -1.0)], 0.1), "variance must be positive"),
        (lambda: logistic_student_of_clusters(-1.0, 0.5, 0.1), "separation must not be negative"),
        (lambda: logistic_student_of_clusters(1.0, 0.0, 0.1), "per_input must be positive"),
        (lambda: largest_margin_weights(inseparable()), "cannot be separated"),
    ],
)
def test_mistakes_are_said(mistake: Callable[[], object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        mistake()


def inseparable() -> ClassifierData:
    return sample_classifier_data(40, np.ones(5), 5, 0.5, np.random.default_rng(0))
