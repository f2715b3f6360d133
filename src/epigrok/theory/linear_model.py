r"""Parameters of the linear model in the paper's units, and what follows from them.

The paper gives no numbers for its summary figure. `summary_model` is this project's choice: noise
free, with a start so wide that the covariance carries the risk, and a likelihood so sharp that the
final risk is far below the tolerance, so that the paper's closures describe real accuracy.
"""

from dataclasses import dataclass

from epigrok.errors import UserError
from epigrok.theory.inputs import FloatOrArray, RealLike, nonnegative, positive, unwrapped


@dataclass(frozen=True, kw_only=True)
class LinearModel:
    r"""$y = Xw_\star + \varepsilon$ with $w_\star \sim \mathcal{N}(0, \tau^2 I)$, $\mu_0 = 0$."""

    n: int = 1000
    """Data points."""
    sigma2: float = 1e-5
    """Variance of the likelihood."""
    sigma_eps2: float = 0.0
    """Variance of the label noise in the data."""
    tau2: float = 1.0
    """Variance of the prior, and of the true weights."""
    s0: float = 100.0
    """Initial variance of every weight."""
    eps: float = 0.05
    """Tolerance on the squared residual."""

    def __post_init__(self) -> None:
        if self.n < 2:
            raise UserError(f"n must be at least 2, not {self.n}")
        for name in ("sigma2", "tau2", "eps"):
            positive(name, getattr(self, name))
        for name in ("sigma_eps2", "s0"):
            nonnegative(name, getattr(self, name))

    @property
    def beta(self) -> float:
        r"""$n/\sigma^2$: the unit of rate; $s = 2\beta t$."""
        return self.n / self.sigma2

    @property
    def alpha(self) -> float:
        r"""$1/\tau^2$."""
        return 1.0 / self.tau2

    @property
    def gamma(self) -> float:
        r"""$\alpha/\beta$: the prior against the data."""
        return self.alpha / self.beta

    def num_weights(self, lam: float) -> int:
        r"""$d = \lambda n$, rounded, at least one."""
        positive("lam", lam)
        return max(1, round(lam * self.n))

    def initial_excess_risk(self, lam: RealLike) -> FloatOrArray:
        r"""$C_0 = \lambda n (\tau^2 + s_0)/2$, to leading order in $\gamma$."""
        return unwrapped(0.5 * positive("lam", lam) * self.n * (self.tau2 + self.s0))

    @property
    def covariance_share(self) -> float:
        r"""Share $s_0/(s_0 + \tau^2)$ of the covariance in the risk, to leading order in gamma."""
        return self.s0 / (self.s0 + self.tau2)


def summary_model(n: int = 1000) -> LinearModel:
    """Parameters of the summary figure.

    `sigma2` and `eps` grow with n, so that n/sigma2 and eps/C0, hence the limit curves, do not
    depend on it: n only sets how far finite systems scatter around them.
    """
    return LinearModel(n=n, sigma2=1e-8 * n, eps=5e-5 * n)
