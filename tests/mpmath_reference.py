"""The theory's exact quantities in mpmath, by other means than the package uses.

Transforms come from power series, Bessel series or a panel quadrature in the angle of the
semicircle; crossings from Newton's method at the working precision. Arguments are the floats the
package gets, taken as exact.
"""

import mpmath
from mpmath import mpf


def edge(lam: float) -> mpf:
    return (1 - mpmath.sqrt(mpf(lam))) ** 2


def atom(lam: float) -> mpf:
    return max(mpf(0), (mpf(lam) - 1) / mpf(lam))


def log_M(s: mpf, lam: float) -> mpf:
    return _log_bessel_factor(s, lam) - edge(lam) * s if s else mpf(0)


def log_R(s: mpf, lam: float) -> mpf:
    """log(G/M): from series where they converge fast, from the quadrature elsewhere."""
    lam_, root = mpf(lam), mpmath.sqrt(mpf(lam))
    if s == 0:
        return mpf(0)
    if lam_ * s < 4 and lam_ * s * s < 16:
        return mpmath.log1p(_early_excess(lam_ * s, lam_ * s * s))
    if root < 0.4 and root * s < 5e3:
        return mpmath.log1p(_bessel_excess(root, 2 * root * s))
    log_continuous, log_m = _log_continuous(s, lam), _log_bessel_factor(s, lam)
    if lam <= 1:
        return log_continuous - log_m
    shift = edge(lam) * s
    if shift > 1e7:
        return mpmath.log(atom(lam)) + shift - log_m
    return mpmath.log(mpmath.exp(log_continuous - shift) + atom(lam)) + shift - log_m


def log_G(s: mpf, lam: float) -> mpf:
    if lam <= 1 or mpf(lam) * s < 4:
        return log_R(s, lam) + log_M(s, lam)
    shift = edge(lam) * s
    lost = 1 / mpf(lam)
    if shift < 1e7:
        lost -= mpmath.exp(_log_continuous(s, lam) - shift)
    return mpmath.log1p(-lost)


def crossing(level: float, which: str, lam: float, gamma: float, guess: float) -> mpf:
    """Newton's method from a float close to the root, to the working precision."""
    transform = log_G if which == "gen" else log_M
    s, gamma_, log_level = mpf(guess), mpf(gamma), mpmath.log(mpf(level))
    for _ in range(60):
        gap = transform(s, lam) - gamma_ * s - log_level
        if which == "gen":
            rate = mpmath.exp(-log_R(s, lam)) + gamma_
        else:
            h = s * mpf(10) ** (-mpmath.mp.dps // 3)
            rate = (log_M(s - h, lam) - log_M(s + h, lam)) / (2 * h) + gamma_
        step = gap / rate
        s += step
        if abs(step) <= abs(s) * mpf(10) ** (10 - mpmath.mp.dps):
            return s
    raise AssertionError(f"no convergence at {level}, {which}, {lam}, {gamma}")


def _early_excess(x: mpf, q: mpf) -> mpf:
    """R - 1 = sum_{j>=2} j x^(j-1) a_j/a_1, x = lam s, a_j = sum_k q^k/(k! (k+j)!), q = lam s^2."""

    def a(j: int) -> mpf:
        return mpmath.hyp0f1(j + 1, q) / mpmath.factorial(j)

    total, first, j = mpf(0), a(1), 2
    while True:
        term = j * x ** (j - 1) * a(j) / first
        total += term
        if term <= total * mpmath.eps:
            return total
        j += 1


def _bessel_excess(root: mpf, z: mpf) -> mpf:
    """R - 1 = sum_{j>=2} j lam^((j-1)/2) I_j(z)/I_1(z): positive terms, geometric for lam < 1."""
    total, first, j = mpf(0), mpmath.besseli(1, z), 2
    while True:
        term = j * root ** (j - 1) * mpmath.besseli(j, z) / first
        total += term
        if term <= total * mpmath.eps:
            return total
        j += 1


def _log_bessel_factor(s: mpf, lam: float) -> mpf:
    """log(2 I_1(z) e^-z / z)."""
    z = 2 * mpmath.sqrt(mpf(lam)) * s
    if z < 1e4:
        return mpmath.log(2 * mpmath.besseli(1, z) / z) - z
    term = total = mpf(1)
    for k in range(1, 200):
        term *= -(4 - mpf(2 * k - 1) ** 2) / (8 * k * z)
        total += term
        if abs(term) < mpmath.eps:
            break
    return mpmath.log(2 / z) + mpmath.log(total) - mpmath.log(2 * mpmath.pi * z) / 2


def _log_continuous(s: mpf, lam: float) -> mpf:
    """log of the integral of e^(-s(nu - nu_-)), panels shrinking towards the edge."""
    root = mpmath.sqrt(mpf(lam))
    nu_minus, z = edge(lam), 2 * root * s
    end = mpmath.pi
    if z > 60:
        end = 2 * mpmath.asin(mpmath.sqrt(min(mpf(1), mpf(2.3 * mpmath.mp.dps + 10) / (2 * z))))
    scales = [mpmath.sqrt(nu_minus / root), 1 / mpmath.sqrt(z)]
    smallest = min([scale for scale in scales if scale > 0], default=end) / (4 * end)
    points = [mpf(1)]
    while points[-1] > smallest:
        points.append(points[-1] / 3)
    points = [mpf(0), *points[::-1]]

    def above(phi: mpf) -> mpf:
        return 4 * root * mpmath.sin(phi / 2) ** 2

    # mpmath stops at an absolute error: the integrand must be of order one on an interval of one.
    largest = above(1 / mpmath.sqrt(z)) / (nu_minus + above(1 / mpmath.sqrt(z)))

    def integrand(x: mpf) -> mpf:
        share = above(end * x) / (nu_minus + above(end * x)) if nu_minus else mpf(1)
        return mpmath.cos(end * x / 2) ** 2 * share / largest * mpmath.exp(-s * above(end * x))

    integral = mpmath.quad(integrand, points, method="gauss-legendre", maxdegree=6)
    return mpmath.log(2 / (mpmath.pi * root) * end * largest * integral)
