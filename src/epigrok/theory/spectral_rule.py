r"""The phi-sinh rule: quadrature over the Marchenko-Pastur law that follows its lower edge.

With $\nu = \nu_- + 4\sqrt\lambda \sin^2(\varphi/2)$ the measure is $(2/\pi) \sin^2\varphi\,
d\varphi / \nu$; $\varphi = w \sinh y$ with $w = |1-\sqrt\lambda|\lambda^{-1/4}$ puts every pole of
the negative $\nu$ axis at distance $\pi/2$ from the real $y$ axis, so Gauss-Legendre converges at
the same rate at every $\lambda$; $\varphi$ stops where the exponential has fallen by $e^{-50}$.
Rules with nodes chosen in $\nu$ miss the edge at large $s$ and silently return zero.
"""

from typing import NamedTuple

import numpy as np

from epigrok.theory.inputs import Array
from epigrok.theory.quadrature import gauss_legendre

NUM_NODES = 160
"""Nodes of the rule: rounding accuracy for every aspect ratio and time."""
_CUT_EXPONENT = 50.0  # e^-50 of the integrand is dropped: far below float64 rounding
_SMALLEST_SCALE = 1e-13  # of the interval: keeps the sinh map defined at lambda = 1
_TINY = float(np.finfo(np.float64).tiny)


class SpectralRule(NamedTuple):
    r"""Nodes on a new last axis; weights carry the tilt $e^{-s(\nu-\nu_-)}$ and want `scale`."""

    nu: Array
    below_one: Array
    r"""$(1 - \nu)/\sqrt\lambda = 2\cos\varphi - \sqrt\lambda$, without the cancellation at 1."""
    weights: Array
    """Of order one at every time; times `scale` they integrate."""
    scale: Array
    """Falls like a power of s, and so below the smallest float at times `log_scale` still has."""
    log_scale: Array

    def log_total(self) -> Array:
        """Logarithm of the integral of the tilt; -inf where an atom has long taken over."""
        with np.errstate(divide="ignore"):
            total: Array = np.log(self.weights.sum(axis=-1)) + self.log_scale
        return total


def lower_edge(lam: Array) -> Array:
    """The lower edge, from checked arrays; 1 - sqrt(lam) written without cancellation at 1."""
    edge: Array = ((1.0 - lam) / (1.0 + np.sqrt(lam))) ** 2
    return edge


def log_lower_edge(lam: Array) -> Array:
    """Its logarithm, relative to itself where it is close to zero; -inf at 1."""
    root = np.sqrt(lam)
    small = 2.0 * np.log1p(-np.minimum(root, 0.5))
    with np.errstate(divide="ignore"):
        large = 2.0 * (np.log(np.abs(1.0 - lam)) - np.log1p(root))
    log_edge: Array = np.where(root < 0.5, small, large)
    return log_edge


def atom_mass(lam: Array) -> Array:
    """Mass of the atom at zero, from checked arrays."""
    atom: Array = np.maximum(lam - 1.0, 0.0) / lam
    return atom


def tilted_rule(lam: Array, s: Array) -> SpectralRule:
    """The rule for arrays of one shape."""
    root, nu_minus = np.sqrt(lam)[..., None], lower_edge(lam)[..., None]
    # Not 50/(4 root s): the product overflows at times where the quotient of quotients does not.
    with np.errstate(over="ignore", divide="ignore"):
        reach = np.clip(_CUT_EXPONENT / s[..., None] / (4.0 * root), _TINY, 1.0)
    half_end = np.arcsin(np.sqrt(reach))
    phi_end, top = 2.0 * half_end, 4.0 * root * reach
    pole = np.maximum(np.sqrt(nu_minus / root), _SMALLEST_SCALE * phi_end)
    y_end = np.arcsinh(phi_end / pole)
    gauss_nodes, gauss_weights = gauss_legendre(NUM_NODES)
    phi = np.minimum(pole * np.sinh(0.5 * y_end * (gauss_nodes + 1.0)), np.pi)
    sine = np.sin(0.5 * phi)
    share = (sine / np.sin(half_end)) ** 2
    above_edge = top * share
    with np.errstate(over="ignore"):
        ratio = nu_minus / top
        tilt = np.exp(-s[..., None] * above_edge)
    # share/(share + ratio), a factor of the density, is at most 1/(1 + ratio), which can be too
    # small for a float and goes into the scale.
    rest = 1.0 / (1.0 + 1.0 / np.maximum(ratio, _TINY))
    density = share / (share / (1.0 + ratio) + rest)
    jacobian = 0.5 * y_end * np.hypot(pole, phi) / phi_end
    weights = gauss_weights * jacobian * density * tilt * (1.0 - sine**2)
    scale = phi_end / (1.0 + ratio) / (0.5 * np.pi * root)
    log_scale = np.log(phi_end) - np.log1p(ratio) - np.log(0.5 * np.pi * root)
    below_one = 2.0 - 4.0 * sine**2 - root
    return SpectralRule(nu_minus + above_edge, below_one, weights, scale[..., 0], log_scale[..., 0])
