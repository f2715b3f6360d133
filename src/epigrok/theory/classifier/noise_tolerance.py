r"""Noise tolerance of a linear classifier: how much noise on its weights its answers survive.

A teacher $w_\star$, $|w_\star| = 1$, labels Gaussian inputs $x \in \mathbb{R}^d$ by $y =
\mathrm{sign}(x^\top w_\star)$, a share `flips` of them wrongly; a student $w$ answers
$\mathrm{sign}(x^\top w)$. Weights $w_j(1 + s\varepsilon_j)$ move its field $x^\top w$ by a Gaussian
of variance $s^2 \sum_j w_j^2 x_j^2 \to s^2|w|^2$, on seen and on fresh inputs alike. So an answer
with $u = |x^\top w|/|w|$ turns with probability $\Phi(-u/s)$, and as both answers are equally
frequent, agreement corrected for chance is $\kappa(s) = 1 - 2\,\mathbb{E}\,\Phi(-u/s)$. The
tolerance $\tau$ of a set of inputs is the $s$ at which $\kappa(s)$ is `level`.

Fresh fields are Gaussian whatever was learnt, $\kappa(s) = 1 - \frac2\pi\arctan s$: **the
tolerance of fresh inputs is the same for every student**, $\tan(\frac\pi2(1-\mathrm{level}))$, and
the ratio of tolerances is decided by the training inputs alone, by how much further from zero the
training pushed their fields.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from epigrok.errors import UserError
from epigrok.theory.inputs import Array
from epigrok.theory.quadrature import gauss_legendre

LEVEL = 0.9
"""Agreement corrected for chance at which the tolerance is read."""
_PANEL_NODES = 40
_FINER = (0.01, 0.03, 0.1, 0.3)
_REACH = 9.0
"""Standard deviations of a Gaussian that count."""


class Student(NamedTuple):
    """A trained classifier in the limit of many weights."""

    overlap: float
    """Cosine of the angle between student and teacher."""
    norm: float
    """Length of the weights, each times the deviation of its feature."""
    generalisation_error: float
    r"""Share of fresh inputs it gets wrong: $\arccos(R)/\pi$ for an overlap $R$ with a teacher."""
    train_accuracy: float
    """On the labels it was trained on, flipped ones included."""
    tolerance_seen: float
    """Of the training inputs; 0 if too many of them lie on the boundary itself."""
    tolerance_watched: float
    """Of fresh inputs."""

    @property
    def ratio(self) -> float:
        """Tolerance of fresh inputs over that of training inputs."""
        if self.tolerance_seen == 0.0:
            return np.inf
        return self.tolerance_watched / self.tolerance_seen


class Fields(NamedTuple):
    """Law of a field over the weights' length: nodes and weights of a quadrature."""

    values: Array
    weights: Array


def fresh_tolerance(level: float = LEVEL) -> float:
    r"""Tolerance of fresh inputs, $\tan(\frac\pi2(1-\mathrm{level}))$: 0.158 at 0.9."""
    return float(np.tan(0.5 * np.pi * (1.0 - _checked_level(level))))


def tolerance(fields: Fields, level: float = LEVEL) -> float:
    r"""The $s$ with $2\,\mathbb{E}\,\Phi(-|u|/s) = 1 - \mathrm{level}$; 0 if no $s$ is so small."""
    target = 0.5 * (1.0 - _checked_level(level))
    distances = np.abs(fields.values)

    def excess(log_s: float) -> float:
        return float(fields.weights @ ndtr(-distances * np.exp(-log_s))) - target

    low, high = np.log(1e-9), np.log(1e9)
    # Half of what lies on the boundary turns at any noise; far out the noise turns half of all.
    return 0.0 if excess(low) >= 0.0 else float(np.exp(brentq(excess, low, high, xtol=1e-13)))


def student(overlap: float, norm: float, margins: Fields, level: float = LEVEL) -> Student:
    """A teacher's student from its overlap and the law of its training margins over its norm."""
    return Student(
        overlap=overlap,
        norm=norm,
        generalisation_error=teacher_error(overlap),
        train_accuracy=float(margins.weights @ (margins.values > 0)),
        tolerance_seen=tolerance(margins, level),
        tolerance_watched=fresh_tolerance(level),
    )


def teacher_error(overlap: float) -> float:
    r"""Share of inputs on which teacher and student differ: the angle between them over $\pi$."""
    return float(np.arccos(np.clip(overlap, -1.0, 1.0)) / np.pi)


def panels(breaks: list[float], turn: float) -> Fields:
    """Composite Gauss-Legendre rule between the given points, finer where the answer turns."""
    nodes, weights = gauss_legendre(_PANEL_NODES)
    finer = [turn + side * step for side in (-1.0, 1.0) for step in _FINER]
    edges = np.unique(np.clip([*breaks, turn, *finer], min(breaks), max(breaks)))
    low, width = edges[:-1, None], np.diff(edges)[:, None]
    values = low + 0.5 * width * (nodes + 1.0)
    return Fields(values.reshape(-1), (0.5 * width * weights).reshape(-1))


def teacher_margins(overlap: float, flips: float, turn: float = 0.0) -> Fields:
    r"""Law of $y\,x^\top w/|w|$ on inputs that $w$ was not trained on.

    Density $2\varphi(k)\,[p + (1-2p)\,\Phi(kR/\sqrt{1-R^2})]$ for a share $p$ of flipped labels.

    Args:
        overlap: R.
        flips: p.
        turn: Margin around which to look closely: where training makes the answer turn.
    """
    width = np.sqrt(max(1.0 - overlap**2, 1e-24)) / max(overlap, 1e-12)
    layer = [side * min(12.0 * width, _REACH) for side in (-1, 1)]
    rule = panels([-_REACH, *layer, 0.0, 1.0, 3.0, _REACH], turn)
    k = rule.values
    right = flips + (1.0 - 2.0 * flips) * ndtr(k / width)
    density = 2.0 * np.exp(-0.5 * k**2) / np.sqrt(2.0 * np.pi) * right
    return Fields(k, rule.weights * density)


def cluster_margins(centre: float, turn: float = 0.0) -> Fields:
    """Law of the margin of a fresh input from one of two clusters: a Gaussian around `centre`."""
    rule = panels([centre + step for step in (-_REACH, -3.0, 0.0, 3.0, _REACH)], turn)
    density = np.exp(-0.5 * (rule.values - centre) ** 2) / np.sqrt(2.0 * np.pi)
    return Fields(rule.values, rule.weights * density)


def checked_flips(flips: float) -> float:
    """`flips`, between 0 and one half."""
    if not 0.0 <= flips <= 0.5:
        raise UserError(f"flips must be between 0 and 0.5, not {flips}")
    return flips


def _checked_level(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise UserError(f"level must be between 0 and 1, not {level}")
    return level
