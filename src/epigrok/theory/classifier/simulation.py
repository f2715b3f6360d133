"""Linear classifiers of finite size: data, three ways to train, and the tolerance as measured.

What the limits of `least_squares` and `convex` are compared with.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from scipy.optimize import brentq, nnls
from scipy.special import expit, ndtr

from epigrok.errors import UserError
from epigrok.theory.classifier.noise_tolerance import LEVEL, Student, teacher_error
from epigrok.theory.inputs import Array

_FRESH_INPUTS = 2000
_NEWTON_STEPS = 100


class NotSeparableError(UserError):
    """No weights get every training input right."""


class ClassifierData(NamedTuple):
    """A training set, the teacher behind it, and fresh inputs."""

    X: Float64[np.ndarray, "n d"]
    y: Float64[np.ndarray, " n"]
    teacher: Float64[np.ndarray, " d"]
    """Weights of the teacher, zero on features that mean nothing; the axis between clusters."""
    fresh: Float64[np.ndarray, "m d"]
    separation: float | None = None
    """Half the distance of two clusters; None where a teacher labels the inputs."""


def sample_classifier_data(
    n: int, deviations: Array, num_teacher: int, flips: float, rng: np.random.Generator
) -> ClassifierData:
    """Gaussian inputs labelled by a random teacher.

    Args:
        n: Training inputs.
        deviations: Standard deviation of each feature.
        num_teacher: The teacher looks at the first so many features.
        flips: Share of labels that are turned.
        rng: Source of randomness.
    """
    teacher = np.zeros(deviations.size)
    teacher[:num_teacher] = rng.standard_normal(num_teacher)
    X, fresh = (rng.standard_normal((size, deviations.size)) for size in (n, _FRESH_INPUTS))
    X, fresh = X * deviations, fresh * deviations
    turned = np.where(rng.random(n) < flips, -1.0, 1.0)
    return ClassifierData(X, np.sign(X @ teacher) * turned, teacher, fresh)


def sample_clusters(n: int, d: int, separation: float, rng: np.random.Generator) -> ClassifierData:
    """Two Gaussian clusters at plus and minus `separation` along a random axis."""
    axis = rng.standard_normal(d)
    axis /= np.linalg.norm(axis)
    sets = []
    for size in (n, _FRESH_INPUTS):
        y = rng.choice([-1.0, 1.0], size)
        sets.append((y, rng.standard_normal((size, d)) + separation * np.outer(y, axis)))
    (y, X), (_, fresh) = sets
    return ClassifierData(X, y, axis, fresh, separation)


def least_squares_weights(data: ClassifierData, s: float, gamma: float, start: Array) -> Array:
    """Weights of gradient flow on the squared loss at time s, from `start`."""
    n = len(data.y)
    nu, basis = np.linalg.eigh(data.X.T @ data.X / n)
    rate = np.maximum(nu, 0.0) + gamma
    with np.errstate(divide="ignore", invalid="ignore"):
        filtered = np.where(rate > 1e-13, -np.expm1(-0.5 * s * rate) / rate, 0.5 * min(s, 1e100))
    pull = basis.T @ (data.X.T @ data.y / n)
    return np.asarray(basis @ (np.exp(-0.5 * s * rate) * (basis.T @ start) + filtered * pull))


def logistic_weights(data: ClassifierData, gamma: float) -> Array:
    """Minimum of the mean logistic loss with weight decay, by Newton's method."""
    signed, n = data.X * data.y[:, None], len(data.y)
    w = np.zeros(signed.shape[1])
    for _ in range(_NEWTON_STEPS):
        g = expit(-signed @ w)
        gradient = gamma * w - signed.T @ g / n
        hessian = (signed * (g * (1.0 - g))[:, None]).T @ signed / n
        step = np.linalg.solve(hessian + gamma * np.eye(w.size), gradient)
        w = w - step
        if np.abs(step).max() < 1e-10 * (1.0 + np.abs(w).max()):
            return w
    raise UserError(f"Newton's method did not settle at gamma = {gamma}")


def largest_margin_weights(data: ClassifierData) -> Array:
    """Shortest weights with all margins at least one: Lawson and Hanson's least distance."""
    signed = data.X * data.y[:, None]
    stacked = np.vstack([signed.T, np.ones(len(signed))])
    target = np.zeros(len(stacked))
    target[-1] = 1.0
    multipliers, residual = nnls(stacked, target, maxiter=30 * len(signed))
    if residual < 1e-7:
        raise NotSeparableError("the training set cannot be separated")
    gap = stacked @ multipliers - target
    return np.asarray(-gap[:-1] / gap[-1])


def measured_student(data: ClassifierData, w: Array, level: float = LEVEL) -> Student:
    """Overlap, accuracy and both tolerances of weights as they are.

    The overlap is that of the fields, so it counts a feature by its variance in the fresh inputs.
    """
    is_clustered = data.separation is not None
    deviations = np.ones(w.size) if is_clustered else np.sqrt((data.fresh**2).mean(axis=0))
    field, teacher = w * deviations, data.teacher * deviations
    norm = float(np.linalg.norm(field))
    overlap = float(field @ teacher / (norm * np.linalg.norm(teacher)))
    return Student(
        overlap=overlap,
        norm=norm,
        generalisation_error=(
            teacher_error(overlap)
            if data.separation is None
            else float(ndtr(-data.separation * overlap))
        ),
        train_accuracy=float((data.y * (data.X @ w) > 0).mean()),
        tolerance_seen=measured_tolerance(data.X, w, level),
        tolerance_watched=measured_tolerance(data.fresh, w, level),
    )


def measured_tolerance(x: Array, w: Array, level: float = LEVEL) -> float:
    """Noise w(1 + s e) at which Cohen's kappa of answers before and after falls to `level`.

    For weights this plain the average over draws of the noise is known: the field of an input moves
    by a Gaussian. Marginals are the predicted ones, before and after.
    """
    field = x @ w
    distance = np.abs(field) / np.sqrt(x**2 @ w**2)
    is_positive = field > 0
    before = is_positive.mean()

    def gap(log_s: float) -> float:
        turned = ndtr(-distance * np.exp(-log_s))
        after = np.where(is_positive, 1.0 - turned, turned).mean()
        chance = before * after + (1.0 - before) * (1.0 - after)
        return float((1.0 - turned.mean() - chance) / (1.0 - chance)) - level

    return float(np.exp(brentq(gap, np.log(1e-9), np.log(1e6))))
