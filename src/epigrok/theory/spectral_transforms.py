r"""The transforms G, M and their ratio R = G/M as logarithms, over the whole range of floats.

$G(s) = \mathbb{E}\, e^{-s\nu}$ and $M(s) = \mathbb{E}\, \nu e^{-s\nu}$ under the Marchenko-Pastur
law, from checked arrays; those of `log_G` and `log_R` are flat. Each value is right relative to
itself: what is small early on, late or at an extreme aspect ratio is computed as such and not as a
difference. `marchenko_pastur` has the functions for users.
"""

import numpy as np
from scipy.special import i1e

from epigrok.theory.inputs import Array
from epigrok.theory.spectral_rule import atom_mass, lower_edge, tilted_rule

_FAR = 1e16  # of z: from here I_1(z) e^-z is (2 pi z)^-1/2, also where z overflows
_EARLY_TERMS = 44  # of the series in lam s: below rounding for lam s < 2, z < 4


def log_M(s: Array, lam: Array) -> Array:
    r"""$M = e^{-\nu_- s}\, 2 I_1(z) e^{-z}/z$, $z = 2\sqrt\lambda s$."""
    with np.errstate(over="ignore"):
        z = 2.0 * np.sqrt(lam) * s
        drop, quick_drop = lower_edge(lam) * s, (1.0 + lam) * s
    value = _log_bessel_factor(s, lam) - drop
    if (z < 0.1).any():
        value = np.where(z < 0.1, _log_early_bessel(z) - quick_drop, value)
    return value


def log_G(s: Array, lam: Array) -> Array:
    """Atom included."""
    # Up to lambda = 1 and early on, log M + log R has its digits; later and above it cancels.
    by_ratio = (lam <= 1.0) | ((lam < 2.0) & (s < 0.5))
    value = np.empty(s.shape)
    if by_ratio.any():
        s_, lam_ = s[by_ratio], lam[by_ratio]
        value[by_ratio] = log_M(s_, lam_) + log_R(s_, lam_)
    if not by_ratio.all():
        value[~by_ratio] = _log_G_with_atom(s[~by_ratio], lam[~by_ratio])
    return value


def log_R(s: Array, lam: Array) -> Array:
    r"""$R - 1 = \sum_{j\ge2} j\lambda^{(j-1)/2} I_j(z)/I_1(z)$, plus what the atom adds."""
    with np.errstate(over="ignore"):
        x, z = lam * s, 2.0 * np.sqrt(lam) * s
    is_early = (x < 2.0) & (z < 4.0)
    value = np.empty(s.shape)
    for chosen, kernel in (
        (is_early, _log_R_early),
        (~is_early & (lam <= 1.0), _log_R_from_edge),
        (~is_early & (lam > 1.0), _log_R_with_atom),
    ):
        if chosen.any():
            value[chosen] = kernel(s[chosen], lam[chosen])
    return value


def with_atom(log_continuous: Array, lam: Array) -> Array:
    """Logarithm of the continuous part and the atom together."""
    has_atom = lam > 1.0
    # Not log1p(-1/lam), which loses the digits of lam - 1 near 1.
    log_atom = np.log(np.where(has_atom, lam - 1.0, 1.0) / np.where(has_atom, lam, 1.0))
    combined: Array = np.where(has_atom, np.logaddexp(log_continuous, log_atom), log_continuous)
    return combined


def _log_G_with_atom(s: Array, lam: Array) -> Array:
    with np.errstate(over="ignore"):
        drop = lower_edge(lam) * s
        is_early = (lam >= 2.0) & (s * (1.0 + np.sqrt(lam)) ** 2 < 2.0)
    rule = tilted_rule(lam, np.where(is_early, 0.0, s))
    log_continuous = rule.log_total() - drop
    # Far above 1, log G is small: what the continuous part has lost, not what it still has.
    lost = 1.0 / lam - np.exp(np.minimum(log_continuous, 0.0))
    with np.errstate(over="ignore"):
        fall = (rule.weights * -np.expm1(-s[:, None] * rule.nu)).sum(axis=-1)
    lost = np.where(is_early, rule.scale * fall, lost)
    far = np.log1p(-np.minimum(lost, 0.5))
    return np.where(lam < 2.0, with_atom(log_continuous, lam), far)


def _log_R_from_edge(s: Array, lam: Array) -> Array:
    rule = tilted_rule(lam, s)
    # 1 - nu averaged over nu p(nu) e^(-s nu)/M: small with sqrt(lam), and so is its rounding.
    excess = (rule.weights * rule.below_one).sum(axis=-1) / (rule.weights * rule.nu).sum(axis=-1)
    return np.log1p(np.sqrt(lam) * excess)


def _log_R_with_atom(s: Array, lam: Array) -> Array:
    with np.errstate(over="ignore"):
        log_atom = np.log(atom_mass(lam)) + lower_edge(lam) * s
        z = 2.0 * np.sqrt(lam) * s
    log_total = np.logaddexp(tilted_rule(lam, s).log_total(), log_atom)
    log_factor = np.where(z < 0.1, _log_early_bessel(z) - z, _log_bessel_factor(s, lam))
    return np.asarray(log_total - log_factor)


def _log_R_early(s: Array, lam: Array) -> Array:
    r"""$R - 1 = \sum_{j\ge2} j x^{j-1} a_j/a_1$ for $x = \lambda s$, $I_j(z) = (z/2)^j a_j$.

    $a_{j-1} = j a_j + (z/2)^2 a_{j+1}$ downwards, where nothing cancels; the sum along with it.
    """
    x = lam * s
    q = x * s
    ratio, excess = np.zeros(x.shape), np.zeros(x.shape)
    for j in range(_EARLY_TERMS, 1, -1):
        ratio = 1.0 / (j + q * ratio)
        excess = x * ratio * (j + excess)
    return np.log1p(excess)


def _log_bessel_factor(s: Array, lam: Array) -> Array:
    """log(2 I_1(z) e^-z / z), M without its exponential, from z = 0.1 on."""
    log_z = np.log(2.0 * np.sqrt(lam)) + np.log(np.maximum(s, np.finfo(np.float64).tiny))
    with np.errstate(over="ignore"):
        z = 2.0 * np.sqrt(lam) * s
    between = np.clip(z, 0.1, _FAR)
    far = np.log(2.0) - 1.5 * log_z - 0.5 * np.log(2.0 * np.pi)
    factor: Array = np.where(z > _FAR, far, np.log(2.0 * i1e(between) / between))
    return factor


def _log_early_bessel(z: Array) -> Array:
    """log(2 I_1(z)/z) up to z = 0.1, relative to z^2 and not to 1."""
    x = np.minimum(z, 0.1) ** 2 / 4.0
    return np.log1p(x / 2 * (1 + x / 6 * (1 + x / 12 * (1 + x / 20 * (1 + x / 30)))))
