r"""What a predictor sampled from q_t gets right, and how uncertain it is, data point by data point.

At an input $x$ with target $y$ the residual of $w \sim q_t$ is Gaussian with mean
$m = y - x^\top\mu_t$ and variance $v = x^\top\Sigma_t x$. Each time costs $O(md)$ for $m$ points
from an isotropic start, $O(md^2)$ otherwise. Results have shape (T, m), or (T,) after averaging
over points; a scalar time drops the T axis.
"""

import numpy as np
from jaxtyping import Float64

from epigrok.errors import UserError
from epigrok.theory.flow import EigenFlow, mode_covariance, mode_means, mode_variances
from epigrok.theory.inputs import Array, FloatOrArray, RealLike, nonnegative, real, unwrapped
from epigrok.theory.threshold import binary_entropy, gaussian_eu, interval_prob


def prediction_moments(
    flow: EigenFlow, t: RealLike, x: RealLike
) -> tuple[Float64[np.ndarray, "*T_m"], Float64[np.ndarray, "*T_m"]]:
    r"""Mean $x^\top\mu_t$ and variance $x^\top\Sigma_t x$ of the prediction, each (T, m).

    Args:
        flow: From `eigen_flow`.
        t: Times.
        x: Inputs, m by d, or one input of d entries, which drops the last axis of the result.
    """
    x = real("x", x)
    if x.ndim not in (1, 2) or x.shape[-1] != flow.a.size:
        raise UserError(f"x must be m by {flow.a.size}, not of shape {x.shape}")
    modes = np.atleast_2d(x) @ flow.U
    times = nonnegative("t", t, allow_inf=True)
    mean = mode_means(flow, times) @ modes.T
    if flow.initial_covariance is None:
        variance = mode_variances(flow, times) @ (modes**2).T
    else:
        # One time after another: a (T, d, d) array of all covariances could be huge.
        flat = [
            np.einsum("md,md->m", modes @ mode_covariance(flow, float(time)), modes)
            for time in times.reshape(-1)
        ]
        variance = np.asarray(flat).reshape(*times.shape, len(modes))
    if x.ndim == 1:
        mean, variance = mean[..., 0], variance[..., 0]
    # Rounding can leave a zero below zero.
    return np.asarray(mean), np.asarray(np.maximum(variance, 0.0))


def accuracy(flow: EigenFlow, t: RealLike, x: RealLike, y: RealLike, eps: RealLike) -> FloatOrArray:
    """Probability that a sampled predictor is within sqrt(eps) of `y`, averaged over points."""
    inside, _ = _success(flow, t, x, y, eps)
    return _mean_over_points(inside, x)


def train_accuracy(flow: EigenFlow, t: RealLike, eps: RealLike) -> FloatOrArray:
    """`accuracy` on the training data: the paper's empirical accuracy."""
    return accuracy(flow, t, flow.X, flow.y, eps)


def population_accuracy(
    flow: EigenFlow, t: RealLike, x: RealLike, w_star: RealLike, sigma_eps2: RealLike, eps: RealLike
) -> FloatOrArray:
    r"""Accuracy at new inputs with Gaussian label noise absorbed into the variance.

    The residual is $\mathcal{N}(x^\top(w_\star-\mu_t),\ \sigma_\varepsilon^2 + x^\top\Sigma_t x)$;
    averaged over the given inputs, which stand for the population.
    """
    w_star = real("w_star", w_star)
    if w_star.shape != flow.a.shape:
        raise UserError(f"w_star has shape {w_star.shape}, the flow has {flow.a.size} weights")
    noise = nonnegative("sigma_eps2", sigma_eps2)
    mean, variance = prediction_moments(flow, t, x)
    inside, _ = interval_prob(real("x", x) @ w_star - mean, variance + noise, eps)
    return _mean_over_points(np.asarray(inside), x)


def threshold_eu(
    flow: EigenFlow, t: RealLike, x: RealLike, y: RealLike, eps: RealLike
) -> FloatOrArray:
    r"""Entropy $h_2(p_t(x, y))$ of a sampled predictor's success, averaged over points, in nats.

    Conditional on the target `y`, so not label-free. All of it is epistemic, because the success of
    known weights on a known target is certain.
    """
    return _mean_over_points(np.asarray(binary_entropy(*_success(flow, t, x, y, eps))), x)


def train_threshold_eu(flow: EigenFlow, t: RealLike, eps: RealLike) -> FloatOrArray:
    """`threshold_eu` on the training data."""
    return threshold_eu(flow, t, flow.X, flow.y, eps)


def predictive_eu(flow: EigenFlow, t: RealLike, x: RealLike, sigma_eps2: RealLike) -> FloatOrArray:
    r"""Uncertainty $\frac12\log(1 + x^\top\Sigma_t x/\sigma_\varepsilon^2)$ at each input."""
    return gaussian_eu(prediction_moments(flow, t, x)[1], sigma_eps2)


def _success(
    flow: EigenFlow, t: RealLike, x: RealLike, y: RealLike, eps: RealLike
) -> tuple[Array, Array]:
    mean, variance = prediction_moments(flow, t, x)
    y = real("y", y)
    if y.shape != np.shape(x)[:-1]:
        raise UserError(f"y has shape {y.shape}, but x has shape {np.shape(x)}")
    inside, outside = interval_prob(y - mean, variance, eps)
    return np.asarray(inside), np.asarray(outside)


def _mean_over_points(values: Array, x: RealLike) -> FloatOrArray:
    return unwrapped(np.asarray(values.mean(axis=-1) if np.ndim(x) == 2 else values))
