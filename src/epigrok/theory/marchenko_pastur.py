r"""The Marchenko-Pastur law of a sample covariance, and its Laplace transforms.

$\nu$ is an eigenvalue of $X^\top X / n$ for an $n \times d$ standard Gaussian $X$ with
$d / n \to \lambda$. The law lives on $[\nu_-, \nu_+] = [(1-\sqrt\lambda)^2, (1+\sqrt\lambda)^2]$,
plus an atom of mass $1 - 1/\lambda$ at zero when $\lambda > 1$. Everything is dimensionless:

$$ G(s) = \mathbb{E}\, e^{-s\nu}, \qquad M(s) = \mathbb{E}\, \nu e^{-s\nu} = -G'(s). $$

Both fall like $e^{-\nu_- s}$ and are returned as logarithms, so that no time is too late.
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal
from scipy.special import erfcx, i1e, ive

from epigrok.errors import UserError
from epigrok.theory.inputs import (
    Array,
    FloatOrArray,
    RealLike,
    broadcast,
    nonnegative,
    positive,
    real,
    scalar,
    unwrapped,
)
from epigrok.theory.quadrature import gauss_legendre, in_blocks

NUM_NODES = 160
"""Nodes of the phi-sinh rule: rounding accuracy for every aspect ratio and time."""
_CUT_EXPONENT = 50.0  # e^-50 of the integrand is dropped: far below float64 rounding
_SMALLEST_SCALE = 1e-13  # of the interval: keeps the sinh map defined at lambda = 1


def mp_edges(lam: RealLike) -> tuple[FloatOrArray, FloatOrArray]:
    r"""Edges $\nu_\pm = (1 \pm \sqrt\lambda)^2$ of the continuous part."""
    lam = positive("lam", lam)
    return unwrapped(lower_edge(lam)), unwrapped((1.0 + np.sqrt(lam)) ** 2)


def mp_atom(lam: RealLike) -> FloatOrArray:
    r"""Mass $\max(0, 1 - 1/\lambda)$ of the atom at zero."""
    return unwrapped(_atom(positive("lam", lam)))


def mp_pdf(nu: RealLike, lam: RealLike) -> FloatOrArray:
    r"""Density $\sqrt{(\nu_+ - \nu)(\nu - \nu_-)} / (2\pi\lambda\nu)$ of the continuous part."""
    nu, lam = broadcast(nu=real("nu", nu), lam=positive("lam", lam))
    product = ((1.0 + np.sqrt(lam)) ** 2 - nu) * (nu - lower_edge(lam))
    inside = (product > 0) & (nu > 0)
    density = np.zeros(nu.shape)
    density[inside] = np.sqrt(product[inside]) / (2.0 * np.pi * lam[inside] * nu[inside])
    return unwrapped(density)


def mp_expect(f: Callable[[Array], Array], lam: RealLike) -> FloatOrArray:
    r"""Expectation $\mathbb{E} f(\nu)$, atom included.

    Smooth `f` and `f` with poles on the negative axis, such as $1/(\nu+\gamma)$, come out to
    rounding. For `f` that falls like $e^{-s\nu}$ use `tilted_expectation`, which keeps relative
    accuracy however small the result.

    Args:
        f: Elementwise function; it may add leading axes, the nodes stay on the last one.
        lam: Aspect ratio.
    """
    lam = scalar(positive("lam", lam), "lam")
    expectation = tilted_expectation(f, lam, 0.0)
    if lam > 1.0:
        at_zero = np.asarray(f(np.zeros(1)))[..., 0]
        expectation = expectation + float(_atom(np.asarray(lam))) * at_zero
    return unwrapped(np.asarray(expectation))


def tilted_expectation(f: Callable[[Array], Array], lam: RealLike, s: RealLike) -> FloatOrArray:
    r"""$\int f(\nu)\, e^{-s(\nu-\nu_-)}\, p(\nu)\, d\nu$ over the continuous part, for $s \ge 0$.

    The phi-sinh rule. With $\nu = \nu_- + 4\sqrt\lambda \sin^2(\varphi/2)$ the measure is
    $(2/\pi) \sin^2\varphi\, d\varphi / \nu$; $\varphi = w \sinh y$ with
    $w = |1-\sqrt\lambda|\lambda^{-1/4}$ puts every pole of the negative $\nu$ axis at distance
    $\pi/2$ from the real $y$ axis, so Gauss-Legendre converges at the same rate at every
    $\lambda$; $\varphi$ stops where the exponential has fallen by $e^{-50}$. Rules with nodes
    chosen in $\nu$ miss the edge at large $s$ and silently return zero.

    Args:
        f: Elementwise function of nodes of shape `(*broadcast(lam, s).shape, num_nodes)`.
        lam: Aspect ratio.
        s: Dimensionless time.
    """
    lam, s = broadcast(lam=positive("lam", lam), s=nonnegative("s", s))
    nu, weights = _tilted_rule(lam, s)
    return unwrapped(np.asarray((weights * f(nu)).sum(axis=-1)))


def mp_resolvent(lam: RealLike, gamma: RealLike) -> FloatOrArray:
    r"""$\mathbb{E}[1/(\nu+\gamma)] = 2/(B+S)$, $B = 1-\lambda+\gamma$, $S^2 = B^2+4\lambda\gamma$.

    Infinite at $\gamma = 0$ when $\lambda \ge 1$.
    """
    lam, gamma = broadcast(lam=positive("lam", lam), gamma=nonnegative("gamma", gamma))
    B = 1.0 - lam + gamma
    S = np.hypot(B, 2.0 * np.sqrt(lam * gamma))
    # B + S cancels for B < 0; (S - B)/(2 lam gamma) is the same number written without it.
    numerator = np.where(B >= 0, 2.0, S - B)
    denominator = np.where(B >= 0, B + S, 2.0 * lam * gamma)
    resolvent = np.full(lam.shape, np.inf)
    np.divide(numerator, denominator, out=resolvent, where=denominator > 0)
    return unwrapped(resolvent)


def mp_log_G(s: RealLike, lam: RealLike) -> FloatOrArray:
    r"""$\log G(s) = \log \mathbb{E}\, e^{-s\nu}$, atom included."""
    s, lam = broadcast(s=nonnegative("s", s), lam=positive("lam", lam))
    return unwrapped(in_blocks(_log_G, s, lam))


def mp_log_M(s: RealLike, lam: RealLike) -> FloatOrArray:
    r"""$\log M(s) = \log \mathbb{E}\, \nu e^{-s\nu}$: $M = e^{-\nu_- s}\, 2 I_1(z) e^{-z}/z$.

    $z = 2\sqrt\lambda s$. Exact for every $\lambda$, because $\nu\, p(\nu)$ is a semicircle.
    """
    s, lam = broadcast(s=nonnegative("s", s), lam=positive("lam", lam))
    z = 2.0 * np.sqrt(lam) * s
    # Near z = 0 the logarithm of 2 I_1(z)/z is needed relative to z^2, not to 1.
    x = np.minimum(z, 0.1) ** 2 / 4.0
    near_zero = np.log1p(x / 2 * (1 + x / 6 * (1 + x / 12 * (1 + x / 20 * (1 + x / 30)))))
    away = np.maximum(z, 0.1)
    scaled = np.log(2.0 * i1e(away) / away)
    return unwrapped(np.where(z < 0.1, near_zero - (1.0 + lam) * s, scaled - lower_edge(lam) * s))


def mp_log_M_rate(s: RealLike, lam: RealLike) -> FloatOrArray:
    r"""Decay rate $-M'/M = \nu_- + 2\sqrt\lambda\,(1 - I_2(z)/I_1(z))$, $z = 2\sqrt\lambda s$."""
    s, lam = broadcast(s=nonnegative("s", s), lam=positive("lam", lam))
    z = 2.0 * np.sqrt(lam) * s
    near, y = np.clip(z, 1e-150, 1e3), 1.0 / np.maximum(z, 1e3)
    # Far out 1 - I_2/I_1 cancels, and ive fails beyond 1e9: its asymptotic series takes over.
    series = y * (1.5 - y * (0.375 + y * (0.375 + y * 63.0 / 128.0)))
    drop = np.where(z < 1e3, 1.0 - ive(2, near) / i1e(near), series)
    return unwrapped(lower_edge(lam) + 2.0 * np.sqrt(lam) * drop)


def mp_log_G_edge(s: RealLike, lam: RealLike) -> FloatOrArray:
    r"""Uniform edge formula for $\log G$: large $z = 2\sqrt\lambda s$, but any $\nu_- s$.

    $$ G \approx \frac{e^{-\nu_- s}}{\pi\lambda^{3/4}} \Big[J_0 - \frac{J_1}{8\sqrt\lambda}\Big]
       + \Big(1-\frac1\lambda\Big)_+, \qquad
       J_0 = \sqrt{\tfrac{\pi}{s}} \big[1 - \sqrt\pi\, x\, \mathrm{erfcx}(x)\big], \quad
       J_1 = \tfrac{\sqrt\pi}{2} s^{-3/2} - \nu_- J_0, $$

    with $x = \sqrt{\nu_- s}$. Relative error about 1e-2 at $s = 1$ and 1e-6 at $s = 100$ for
    $\lambda$ near 1. NaN at small $z$, where the formula has no positive value.
    """
    s, lam = broadcast(s=nonnegative("s", s), lam=positive("lam", lam))
    nu_minus, sqrt_lam = lower_edge(lam), np.sqrt(lam)
    safe_s = np.where(s > 0, s, 1.0)
    x2 = nu_minus * safe_s
    # 1 - sqrt(pi) x erfcx(x) cancels for large x: its asymptotic series takes over.
    y = 1.0 / np.maximum(x2, 1e4)
    x = np.sqrt(np.minimum(x2, 1e4))
    series = y / 2.0 * (1.0 - y * 1.5 * (1.0 - y * 2.5))
    bracket = np.where(x2 > 1e4, series, 1.0 - np.sqrt(np.pi) * x * erfcx(x))
    J0 = np.sqrt(np.pi / safe_s) * bracket
    J1 = np.sqrt(np.pi) / 2.0 * safe_s**-1.5 - nu_minus * J0
    value = (J0 - J1 / (8.0 * sqrt_lam)) / (np.pi * lam**0.75)
    has_value = (s > 0) & (value > 0)
    log_continuous = np.log(np.where(has_value, value, 1.0)) - nu_minus * s
    return unwrapped(np.where(has_value, _with_atom(log_continuous, lam), np.nan))


def sample_spectrum(n: int, d: int, rng: np.random.Generator) -> Array:
    r"""Eigenvalues of $X^\top X / n$ for a standard Gaussian $n \times d$ matrix, ascending.

    Dumitriu and Edelman's bidiagonal model: chi variables and a tridiagonal eigenvalue problem,
    $O(d^2)$ time and $O(d)$ memory, the matrix itself is never built. The eigenvectors of a
    Gaussian $X$ are Haar distributed and independent of the spectrum, so any rotation-invariant
    quantity can be drawn in the eigenbasis.
    """
    if n < 1 or d < 1:
        raise UserError(f"a spectrum needs n >= 1 and d >= 1, not n = {n}, d = {d}")
    long, short = max(n, d), min(n, d)
    diagonal2 = rng.chisquare(np.arange(long, long - short, -1))
    below2 = rng.chisquare(np.arange(short - 1, 0, -1))
    main = diagonal2.copy()
    main[1:] += below2
    off = np.sqrt(diagonal2[:-1] * below2)
    spectrum = np.zeros(d)
    spectrum[d - short :] = eigvalsh_tridiagonal(main, off, lapack_driver="sterf") / n
    return np.maximum(spectrum, 0.0)  # rounding can push an eigenvalue below zero


def lower_edge(lam: Array) -> Array:
    """The lower edge, from checked arrays; 1 - sqrt(lam) written without cancellation at 1."""
    edge: Array = ((1.0 - lam) / (1.0 + np.sqrt(lam))) ** 2
    return edge


def _atom(lam: Array) -> Array:
    atom: Array = np.maximum(lam - 1.0, 0.0) / lam
    return atom


def _with_atom(log_continuous: Array, lam: Array) -> Array:
    has_atom = lam > 1.0
    log_atom = np.log1p(-1.0 / np.where(has_atom, lam, np.inf))
    combined: Array = np.where(has_atom, np.logaddexp(log_continuous, log_atom), log_continuous)
    return combined


def _tilted_rule(lam: Array, s: Array) -> tuple[Array, Array]:
    """Nodes and weights of the phi-sinh rule on a new last axis, tilt included."""
    sqrt_lam, nu_minus = np.sqrt(lam)[..., None], lower_edge(lam)[..., None]
    reach = _CUT_EXPONENT / np.maximum(4.0 * sqrt_lam * s[..., None], _CUT_EXPONENT)
    phi_end = 2.0 * np.arcsin(np.sqrt(reach))
    scale = np.maximum(np.sqrt(nu_minus / sqrt_lam), _SMALLEST_SCALE * phi_end)
    y_end = np.arcsinh(phi_end / scale)
    gauss_nodes, gauss_weights = gauss_legendre(NUM_NODES)
    y = 0.5 * y_end * (gauss_nodes + 1.0)
    phi = np.minimum(scale * np.sinh(y), np.pi)
    above_edge = 4.0 * sqrt_lam * np.sin(0.5 * phi) ** 2
    nu = nu_minus + above_edge
    jacobian = 0.5 * y_end * np.hypot(scale, phi)
    density = (2.0 / np.pi) * np.sin(phi) ** 2 / nu
    return nu, gauss_weights * jacobian * density * np.exp(-s[..., None] * above_edge)


def _log_G(s: Array, lam: Array) -> Array:
    # Before s nu_+ = 0.1, log G ~ -s is smaller than the rounding of G ~ 1: integrate G - 1.
    is_early = s * (1.0 + np.sqrt(lam)) ** 2 < 0.1
    nu, weights = _tilted_rule(lam, np.where(is_early, 0.0, s))
    log_G = _with_atom(np.log(weights.sum(axis=-1)) - lower_edge(lam) * s, lam)
    if is_early.any():
        fall = np.expm1(-s[is_early, None] * nu[is_early])
        log_G[is_early] = np.log1p((weights[is_early] * fall).sum(axis=-1))
    return log_G
