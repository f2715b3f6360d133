r"""Noise tolerance of logistic regression with weight decay and of the largest margin.

The minimum of $\frac1n\sum_i \ell(y_i x_i^\top w) + \frac\gamma2|w|^2$ for $n, d \to \infty$
together. Features come in kinds: $\lambda_b n$ of variance $\sigma_b^2$ each, which carry the share
$\theta_b$ of the teacher's field. Leaving a training input out, its margin $k$ is that of a fresh
one, a Gaussian field with the teacher's label; putting it back moves the margin to $z(k)$ with
$z = k + V g$, $g = -\ell'(z)$, where $V = x^\top H^{-1} x$ for the Hessian $H$ of the sum. With
$c = (1-2p)\sqrt{2/\pi}$ and $a = \mathbb{E}\,\ell''/(1+V\ell'')$ at $z$, every kind of feature
answers with the stiffness $h_b = \gamma/\sigma_b^2 + a$, and

$$ V = \sum_b \frac{\lambda_b}{h_b}, \qquad m = \hat c \sum_b \frac{\theta_b}{h_b}, \qquad
   q = \sum_b \frac{\theta_b \hat c^2 + \lambda_b\,\mathbb{E}\,g^2}{h_b^2}, \qquad
   \hat c = c\,\mathbb{E}_{k\sim\mathcal{N}(0,\,q-m^2)}\, g(k) $$

for the field's part $m$ along the teacher's and its variance $q$; overlap $R = m/\sqrt q$. These
are the known equations of the replica method and of Gordon's inequality for convex losses (Gardner
1988; Opper & Kinzel 1996; Salehi, Abbasi & Hassibi 2019; Aubin et al. 2020; for the largest margin
Montanari et al. 2019), re-derived by leaving one input out.

The largest margin is the limit $\gamma \to 0$ where all inputs can be fitted: $z = \max(k, 1)$ in
units of the margin, and $V$ drops out. Without a rule (`flips` = 1/2) that ends at $\lambda = 1/2$,
Cover's two inputs per weight.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import root
from scipy.special import expit, ndtr, wrightomega

from epigrok.errors import UserError
from epigrok.theory.classifier.noise_tolerance import (
    LEVEL,
    Fields,
    Student,
    checked_flips,
    cluster_margins,
    student,
    teacher_margins,
    tolerance,
)
from epigrok.theory.inputs import Array, nonnegative, positive, scalar
from epigrok.theory.quadrature import gauss_legendre

_TOLERANCE = 1e-9
_DAMPED_STEPS = 30


class Features(NamedTuple):
    """One kind of feature."""

    per_input: float
    """Their number over the number of training inputs."""
    variance: float = 1.0
    teacher: float = 1.0
    """Share of the teacher's field they carry; the shares of all kinds add up to one."""


def logistic_student(
    features: Sequence[Features], gamma: float, flips: float = 0.0, level: float = LEVEL
) -> Student:
    """Logistic regression with weight decay, trained to the end.

    Args:
        features: Kinds of features; `[Features(lam)]` for d = lam n equal ones.
        gamma: Weight decay, per input.
        flips: Share of wrong labels; one half for labels without a rule.
        level: Agreement at which tolerance is read.
    """
    kinds = _kinds(features)
    gamma = scalar(positive("gamma", gamma), "gamma")
    c = (1.0 - 2.0 * checked_flips(flips)) * np.sqrt(2.0 / np.pi)

    def improved(state: Array) -> Array:
        norm, V = float(np.exp(state[0])), float(np.exp(state[2]))
        margins = teacher_margins(float(np.tanh(state[1])), flips)
        pull = c * _gaussian_mean(lambda k: expit(-pushed(k, V)), norm / np.cosh(state[1]))
        return _answer(kinds, gamma, pushed(norm * margins.values, V), (margins.weights, V, pull))

    # Decay so strong that every input pulls alike: Hebb's rule.
    first = float((kinds[0] / (2.0 * (gamma / kinds[1] + 0.25))).sum())
    start = np.array([np.log(first), 0.5 * c, np.log(first)])
    log_norm, angle, log_V = fixed_point(improved, start)
    norm, overlap, V = float(np.exp(log_norm)), float(np.tanh(angle)), float(np.exp(log_V))
    # The margin left out that ends on the boundary, where the answer turns.
    margins = teacher_margins(overlap, flips, -0.5 * V / norm)
    moved = pushed(norm * margins.values, V) / norm
    return student(overlap, norm, Fields(moved, margins.weights), level)


def logistic_student_of_clusters(
    separation: float, lam: float, gamma: float, level: float = LEVEL
) -> Student:
    r"""Logistic regression on two clusters of inputs, $x = y\,\Delta\,v + \text{noise}$, $|v| = 1$.

    What features become when a network has found the rule: inputs with one answer are alike. Fresh
    margins are $\mathcal{N}(\Delta m, q)$ and no longer the same whatever was learnt; the equations
    stay, with $\hat c = \Delta\,\mathbb{E}\,g$ (Mignacco et al. 2020). The overlap is that of $w$
    and $v$, the error on fresh inputs $\Phi(-\Delta R)$. Needs $\Delta^2$ small against $d$.

    Args:
        separation: Half the distance of the clusters, in standard deviations of the noise.
        lam: d/n, weights per training input.
        gamma: Weight decay, per input.
        level: Agreement at which tolerance is read.
    """
    separation = scalar(nonnegative("separation", separation), "separation")
    gamma = scalar(positive("gamma", gamma), "gamma")
    kinds = _kinds([Features(lam)])

    def improved(state: Array) -> Array:
        norm, V = float(np.exp(state[0])), float(np.exp(state[2]))
        margins = cluster_margins(separation * float(np.tanh(state[1])))
        z = pushed(norm * margins.values, V)
        pull = separation * float(margins.weights @ expit(-z))
        return _answer(kinds, gamma, z, (margins.weights, V, pull))

    first = lam / (2.0 * (gamma + 0.25))
    start = np.array([np.log(first), 0.5 * min(separation, 1.0), np.log(first)])
    log_norm, angle, log_V = fixed_point(improved, start)
    norm, overlap, V = float(np.exp(log_norm)), float(np.tanh(angle)), float(np.exp(log_V))
    margins = cluster_margins(separation * overlap, -0.5 * V / norm)
    moved = Fields(pushed(norm * margins.values, V) / norm, margins.weights)
    return student(overlap, norm, moved, level)._replace(
        generalisation_error=float(ndtr(-separation * overlap)),
        tolerance_watched=tolerance(cluster_margins(separation * overlap), level),
    )


def largest_margin_student(lam: float, flips: float = 0.0, level: float = LEVEL) -> Student:
    """The separating plane of largest margin; length in units of one over the margin.

    Args:
        lam: d/n, weights per training input.
        flips: 0, or one half for labels without a rule, which needs `lam` above one half.
        level: Agreement at which tolerance is read.
    """
    lam = scalar(positive("lam", lam), "lam")
    if flips not in (0.0, 0.5):
        raise UserError(f"the largest margin is known for flips of 0 and 0.5, not {flips}")
    if flips == 0.5 and lam <= 0.5:
        raise UserError(f"labels without a rule can be fitted for lam above 0.5, not at {lam}")
    c = (1.0 - 2.0 * flips) * np.sqrt(2.0 / np.pi)

    def improved(state: Array) -> Array:
        norm = float(np.exp(state[0]))
        margins = teacher_margins(float(np.tanh(state[1])), flips, 1.0 / norm)
        pull = _gaussian_mean(
            lambda k: np.maximum(1.0 - k, 0.0), norm / float(np.cosh(state[1])), 1.0
        )
        lack = np.maximum(1.0 - norm * margins.values, 0.0)
        return _length_and_angle(c / lam * pull, float(margins.weights @ lack**2) / lam)

    log_norm, angle = fixed_point(improved, np.array([0.0, 0.5 * c]))
    norm, overlap = float(np.exp(log_norm)), float(np.tanh(angle))
    margins = teacher_margins(overlap, flips, 1.0 / norm)
    moved = np.maximum(margins.values, 1.0 / norm)
    return student(overlap, norm, Fields(moved, margins.weights), level)


def _kinds(features: Sequence[Features]) -> Array:
    """Columns of the kinds, checked: their number per input, variances, the teacher's shares."""
    kinds = np.array(features, dtype=np.float64).reshape(-1, 3).T
    positive("per_input", kinds[0])
    positive("variance", kinds[1])
    nonnegative("teacher", kinds[2])
    if abs(kinds[2].sum() - 1.0) > 1e-9:
        raise UserError(f"the teacher's shares must add up to 1, not {kinds[2].sum()}")
    return kinds


def _answer(kinds: Array, gamma: float, z: Array, training: tuple[Array, float, float]) -> Array:
    """Length, angle and V that follow from the margins z of the training inputs.

    Args:
        kinds: From `_kinds`.
        gamma: Weight decay.
        z: Margins after training.
        training: Weights of the margins, V, and the pull along the teacher.
    """
    (per_input, variance, teacher), (weights, V, pull) = kinds, training
    curvature = expit(z) * expit(-z)
    stiffness = gamma / variance + float(weights @ (curvature / (1.0 + V * curvature)))
    along = float((teacher / stiffness).sum())
    # q - m^2, the first part of which vanishes when the teacher is in one kind of feature.
    spread = float((teacher / stiffness**2).sum()) - along**2
    noise = float(weights @ expit(-z) ** 2) * float((per_input / stiffness**2).sum())
    state = _length_and_angle(pull * along, pull**2 * max(spread, 0.0) + noise)
    return np.array([*state, np.log((per_input / stiffness).sum())])


def _length_and_angle(m: float, rest2: float) -> Array:
    """Logarithm of the length and artanh of the overlap, from the part along the teacher."""
    return np.array([0.5 * np.log(m**2 + rest2), np.arcsinh(m / np.sqrt(rest2))])


def pushed(k: Array, V: float) -> Array:
    """Root of z = k + V/(1 + e^z), between k and k + V: Newton's method, bisection beside it."""
    low, high = k, k + V
    # Without the one in the denominator the root is an omega function, and too large.
    z = np.minimum(k + wrightomega(np.log(V) - k), high)
    for _ in range(100):
        g = expit(-z)
        gap = z - k - V * g
        step = gap / (1.0 + V * g * (1.0 - g))
        if (np.abs(step) <= 1e-14 * (1.0 + np.abs(z))).all():
            break
        low, high = np.where(gap < 0, z, low), np.where(gap > 0, z, high)
        is_inside = (z - step >= low) & (z - step <= high)
        z = np.where(is_inside, z - step, 0.5 * (low + high))
    return z


def _gaussian_mean(f: Callable[[Array], Array], spread: float, kink: float | None = None) -> float:
    """Mean of `f` over a centred Gaussian, split at a kink."""
    breaks = [-9.0 * spread, 0.0, 9.0 * spread]
    if kink is not None and kink < breaks[-1]:
        breaks = sorted([*breaks, kink])
    nodes, weights = gauss_legendre(60)
    total = 0.0
    for low, high in zip(breaks[:-1], breaks[1:]):
        k = low + 0.5 * (high - low) * (nodes + 1.0)
        density = np.exp(-0.5 * (k / spread) ** 2) / (np.sqrt(2.0 * np.pi) * spread)
        total += 0.5 * (high - low) * float(weights @ (density * f(k)))
    return total


def fixed_point(improved: Callable[[Array], Array], state: Array) -> Array:
    """Damped steps into the neighbourhood, then Powell's method on what is left."""
    for _ in range(_DAMPED_STEPS):
        state = 0.5 * (state + improved(state))
    found = root(lambda x: improved(x) - x, state, method="hybr", options={"xtol": 1e-13})
    if np.abs(improved(found.x) - found.x).max() > _TOLERANCE:
        raise UserError("the equations of the classifier did not settle: parameters too extreme")
    return np.asarray(found.x)
