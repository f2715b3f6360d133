r"""Noise tolerance along the training of a least-squares classifier, in closed form.

Gradient flow $\dot w = X^\top(y - Xw)/n - \gamma w$ on labels $y = \pm1$, from $w_0$ of length
$\sqrt r$ in a random direction. With $\hat\Sigma = X^\top X/n$, $s = 2t$ as everywhere and
$f(\nu) = (1 - e^{-(\nu+\gamma)s/2})/(\nu+\gamma)$,

$$ w = e^{-(\hat\Sigma+\gamma)s/2} w_0 + f(\hat\Sigma)\, X^\top y/n . $$

Split $y = c\,\nu_\star + \eta$ into its regression on the teacher's field, with
$c = (1-2p)\sqrt{2/\pi}$, and a rest of variance $1 - c^2$ that is uncorrelated with it. Averages
over the Marchenko-Pastur law with $\lambda = d/n$ give overlap and length,

$$ w_\star^\top w = c\,\mathbb{E}[\nu f], \qquad
   |w|^2 = r\,\mathbb{E}\,e^{-(\nu+\gamma)s} + c^2\,\mathbb{E}[\nu^2f^2]
   + (1-c^2)\,\lambda\,\mathbb{E}[\nu f^2], $$

and the field of a training input is $A y + B\nu_\star + C\xi$ with $\xi$ standard normal: $A =
\lambda\,\mathbb{E}[\nu f]$, what the label does to its own prediction (its leverage), $B =
c\,(\mathbb{E}[\nu^2 f] - A)$, and $C^2$ is what is missing from
$|Xw|^2/n = r\,\mathbb{E}[\nu e^{-(\nu+\gamma)s}] + c^2\,\mathbb{E}[\nu^3f^2] +
(1-c^2)\lambda\,\mathbb{E}[\nu^2f^2]$. Memorising is $A$; at $A = 0$ the margins are those of fresh
inputs and the ratio of tolerances is one.
"""

import numpy as np
from scipy.special import exprel, ndtr

from epigrok.errors import UserError
from epigrok.theory.classifier.noise_tolerance import (
    LEVEL,
    Fields,
    Student,
    checked_flips,
    panels,
    student,
)
from epigrok.theory.inputs import Array, nonnegative, positive, scalar
from epigrok.theory.marchenko_pastur import mp_expect

_REACH = 9.0


def least_squares_student(
    s: float,
    lam: float,
    gamma: float,
    start: float = 0.0,
    flips: float = 0.0,
    level: float = LEVEL,
) -> Student:
    """The classifier at time s.

    Args:
        s: Time, infinite for the end.
        lam: d/n, weights per training input.
        gamma: Weight decay.
        start: Squared length of the initial weights.
        flips: Share of wrong labels; one half for labels without a rule.
        level: Agreement at which tolerance is read.
    """
    s = scalar(nonnegative("s", s, allow_inf=True), "s")
    lam, gamma = scalar(positive("lam", lam), "lam"), scalar(nonnegative("gamma", gamma), "gamma")
    start = scalar(nonnegative("start", start), "start")
    c = (1.0 - 2.0 * checked_flips(flips)) * np.sqrt(2.0 / np.pi)

    def parts(nu: Array) -> Array:
        rate = nu + gamma
        if s == np.inf:
            decay, f = (rate == 0) * 1.0, np.where(rate > 0, 1.0 / np.where(rate > 0, rate, 1), 0)
        else:
            decay, f = np.exp(-0.5 * s * rate), 0.5 * s * exprel(-0.5 * s * rate)
        return np.stack(
            [nu * f, nu**2 * f, nu * f**2, nu**2 * f**2, nu**3 * f**2, decay**2, nu * decay**2]
        )

    nf, n2f, nf2, n2f2, n3f2, left, n_left = np.asarray(mp_expect(parts, lam))
    norm2 = start * left + c**2 * n2f2 + (1.0 - c**2) * lam * nf2
    own = lam * nf
    along = c * (n2f - own)
    square = start * n_left + c**2 * n3f2 + (1.0 - c**2) * lam * n2f2
    # Rounding can leave a zero below zero.
    rest2 = max(square - own**2 - along**2 - 2.0 * own * along * c, 0.0)
    norm = float(np.sqrt(norm2))
    if norm == 0.0:
        raise UserError("weights of length zero have no answers: s or start must be positive")
    scaled = own / norm, along / norm, float(np.sqrt(rest2)) / norm
    return student(float(c * nf) / norm, norm, _margins(*scaled, flips), level)


def _margins(own: float, along: float, rest: float, flips: float) -> Fields:
    """Law of a + b|g| + c xi, and of a - b|g| + c xi for the flipped share."""
    width = float(np.hypot(along, rest))
    if width < 1e-12:
        return Fields(np.array([own]), np.array([1.0]))
    skew = along / max(rest, 1e-12 * width)
    layer = [side * min(12.0 / max(abs(skew), 1e-12), _REACH) for side in (-1, 1)]
    rule = panels([-_REACH, *layer, 0.0, _REACH], -own / width)
    x = rule.values
    density = 2.0 * np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi)
    density = density * (ndtr(skew * x) * (1.0 - flips) + ndtr(-skew * x) * flips)
    return Fields(own + width * x, rule.weights * density)
