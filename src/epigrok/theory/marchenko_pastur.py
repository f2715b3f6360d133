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
from epigrok.theory.quadrature import in_blocks
from epigrok.theory.spectral_rule import atom_mass, lower_edge, tilted_rule
from epigrok.theory.spectral_transforms import log_G, log_M, log_R, with_atom


def mp_edges(lam: RealLike) -> tuple[FloatOrArray, FloatOrArray]:
    r"""Edges $\nu_\pm = (1 \pm \sqrt\lambda)^2$ of the continuous part."""
    lam = positive("lam", lam)
    return unwrapped(lower_edge(lam)), unwrapped((1.0 + np.sqrt(lam)) ** 2)


def mp_atom(lam: RealLike) -> FloatOrArray:
    r"""Mass $\max(0, 1 - 1/\lambda)$ of the atom at zero."""
    return unwrapped(atom_mass(positive("lam", lam)))


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
        expectation = expectation + float(atom_mass(np.asarray(lam))) * at_zero
    return unwrapped(np.asarray(expectation))


def tilted_expectation(f: Callable[[Array], Array], lam: RealLike, s: RealLike) -> FloatOrArray:
    r"""$\int f(\nu)\, e^{-s(\nu-\nu_-)}\, p(\nu)\, d\nu$ over the continuous part, for $s \ge 0$.

    By the phi-sinh rule of `spectral_rule`.

    Args:
        f: Elementwise function of nodes of shape `(*broadcast(lam, s).shape, num_nodes)`.
        lam: Aspect ratio.
        s: Dimensionless time.
    """
    lam, s = broadcast(lam=positive("lam", lam), s=nonnegative("s", s))
    rule = tilted_rule(lam, s)
    return unwrapped(np.asarray(rule.scale * (rule.weights * f(rule.nu)).sum(axis=-1)))


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
    return unwrapped(in_blocks(log_G, s, lam))


def mp_log_M(s: RealLike, lam: RealLike) -> FloatOrArray:
    r"""$\log M(s) = \log \mathbb{E}\, \nu e^{-s\nu}$: $M = e^{-\nu_- s}\, 2 I_1(z) e^{-z}/z$.

    $z = 2\sqrt\lambda s$. Exact for every $\lambda$, because $\nu\, p(\nu)$ is a semicircle.
    """
    s, lam = broadcast(s=nonnegative("s", s), lam=positive("lam", lam))
    return unwrapped(log_M(s, lam))


def mp_log_R(s: RealLike, lam: RealLike) -> FloatOrArray:
    r"""$\log R(s) = \log(G/M)$, relative to itself however small it is.

    $R - 1 = \sum_{j\ge2} j \lambda^{(j-1)/2} I_j(z)/I_1(z)$ has positive terms only: $R \ge 1$, and
    $R \le 1/\nu_-$ for $\lambda < 1$.
    """
    s, lam = broadcast(s=nonnegative("s", s), lam=positive("lam", lam))
    return unwrapped(in_blocks(log_R, s, lam))


def mp_log_M_rate(s: RealLike, lam: RealLike) -> FloatOrArray:
    r"""Decay rate $-M'/M = \nu_- + 2\sqrt\lambda\,(1 - I_2(z)/I_1(z))$, $z = 2\sqrt\lambda s$."""
    s, lam = broadcast(s=nonnegative("s", s), lam=positive("lam", lam))
    with np.errstate(over="ignore"):
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
    with np.errstate(over="ignore"):
        x2 = nu_minus * safe_s
    # 1 - sqrt(pi) x erfcx(x) cancels for large x: its asymptotic series takes over.
    y = 1.0 / np.maximum(x2, 1e4)
    x = np.sqrt(np.minimum(x2, 1e4))
    series = y / 2.0 * (1.0 - y * 1.5 * (1.0 - y * 2.5))
    bracket = np.where(x2 > 1e4, series, 1.0 - np.sqrt(np.pi) * x * erfcx(x))
    # At the smallest and largest times the formula overflows on its way to NaN or an atom.
    with np.errstate(over="ignore", invalid="ignore"):
        J0 = np.sqrt(np.pi / safe_s) * bracket
        J1 = np.sqrt(np.pi) / 2.0 * safe_s**-1.5 - nu_minus * J0
        value = (J0 - J1 / (8.0 * sqrt_lam)) / (np.pi * lam**0.75)
        has_value = (s > 0) & (value > 0) & (value < np.inf)
        log_continuous = np.log(np.where(has_value, value, 1.0)) - nu_minus * s
    return unwrapped(np.where(has_value, with_atom(log_continuous, lam), np.nan))


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
