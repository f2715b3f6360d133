"""Mistakes end in one sentence that names the value."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from epigrok.errors import UserError
from epigrok.theory import asymptotics, bayes_risk, delay, excess_risk, flow, predictive, threshold
from epigrok.theory import marchenko_pastur as mp
from epigrok.theory.linear_model import LinearModel, summary_model
from epigrok.theory.simulation import residual_moments, risk_crossing, sample_system
from epigrok.theory.summary import summary_table
from epigrok.theory.validity import validity_report

X = np.arange(6.0).reshape(3, 2) - 2.0
Y = np.ones(3)


def make_flow(**changes: Any) -> flow.EigenFlow:
    arguments = {
        "X": X, "y": Y, "sigma2": 1.0, "tau2": 1.0, "mu0": np.zeros(2), "Sigma0": np.eye(2),
    }  # fmt: skip
    return flow.eigen_flow(**(arguments | changes))


MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (lambda: make_flow(sigma2=0.0), "sigma2 must be positive, not 0.0"),
    (lambda: make_flow(sigma2=-2.0), "sigma2 must be positive, not -2.0"),
    (lambda: make_flow(sigma2=np.inf), "sigma2 must be finite, not inf"),
    (lambda: make_flow(tau2=0.0), "tau2 must be positive, not 0.0"),
    (lambda: make_flow(X=np.ones((3, 2)), tau2=np.inf), "improper"),
    (lambda: make_flow(Sigma0=np.diag([1.0, -0.5])), "lowest eigenvalue is -0.5"),
    (lambda: make_flow(Sigma0=[[1.0, 0.5], [0.0, 1.0]]), "transpose by 0.5"),
    (lambda: make_flow(Sigma0=-1.0), "Sigma0 must not be negative, not -1.0"),
    (lambda: make_flow(Sigma0=np.eye(3)), r"not of shape \(3, 3\)"),
    (lambda: make_flow(Sigma0=[[np.nan, 0.0], [0.0, 1.0]]), "Sigma0 must be finite, not nan"),
    (lambda: make_flow(y=np.ones(4)), r"y must have shape \(3,\) to fit X, not \(4,\)"),
    (lambda: make_flow(mu0=np.ones(3)), r"mu0 must have shape \(2,\)"),
    (lambda: make_flow(X=np.ones(3)), r"X must be an n by d matrix, not of shape \(3,\)"),
    (lambda: make_flow(X=[["a", "b"]]), "X must be real numbers"),
    (lambda: flow.mean_at(make_flow(), -1.0), "t must not be negative, not -1.0"),
    (lambda: flow.mean_at(make_flow(), np.nan), "t must be finite, not nan"),
    (lambda: flow.risks_at(make_flow(), 1.0, np.ones(3), 0.0), r"w_star has shape \(3,\)"),
    (lambda: flow.risks_at(make_flow(), 1.0, np.ones(2), -1.0), "sigma_eps2"),
    (lambda: flow.risks_at(make_flow(), 1.0, np.ones(2), 0.0, np.eye(3)), "Sigma_x has shape"),
    (lambda: flow.risks_at(make_flow(), 1.0, np.ones(2), 0.0, -np.eye(2)), "Sigma_x must be pos"),
    (lambda: predictive.train_accuracy(make_flow(), 1.0, 0.0), "eps must be positive, not 0.0"),
    (lambda: predictive.accuracy(make_flow(), 1.0, X, np.ones(2), 1.0), r"y has shape \(2,\)"),
    (lambda: predictive.prediction_moments(make_flow(), 1.0, np.ones(3)), "x must be m by 2"),
    (lambda: predictive.population_accuracy(make_flow(), 1, X, [1.0], 0.1, 1.0), "w_star has"),
    (lambda: predictive.predictive_eu(make_flow(), 1.0, X, 0.0), "sigma_eps2 must be positive"),
    (lambda: mp.mp_log_G(-1.0, 0.5), "s must not be negative, not -1.0"),
    (lambda: mp.mp_log_G(1.0, 0.0), "lam must be positive, not 0.0"),
    (lambda: mp.mp_log_M([1.0, np.nan], 0.5), "s must be finite, not nan"),
    (lambda: mp.mp_log_G([1.0, 2.0], [0.5, 0.6, 0.7]), "shapes do not broadcast: s"),
    (lambda: mp.mp_resolvent(0.5, -0.1), "gamma must not be negative, not -0.1"),
    (lambda: mp.mp_expect(np.exp, np.array([0.5, 0.6])), "lam must be one number"),
    (lambda: mp.sample_spectrum(0, 3, np.random.default_rng(0)), "not n = 0, d = 3"),
    (lambda: threshold.interval_prob(0.0, -1.0, 1.0), "variance must not be negative, not -1.0"),
    (lambda: threshold.interval_prob(0.0, 1.0, 0.0), "eps must be positive, not 0.0"),
    (lambda: threshold.binary_entropy(1.5), "p must be at most 1, not 1.5"),
    (lambda: threshold.accuracy_closure(-1e-3, 1.0), "risk must not be negative, not -0.001"),
    (lambda: threshold.gaussian_eu(1.0, 0.0), "sigma_eps2 must be positive, not 0.0"),
    (lambda: delay.crossings(0.5, 0.0, 0.0), "eps_over_C0 must be positive, not 0.0"),
    (lambda: delay.crossings(0.5, 0.0, 5e-324), "eps_over_C0 must be at least 1.78e-307"),
    (lambda: excess_risk.crossing_time(1e-300, "emp", 0.5, 1, 0, 1e100), "c / C0 leaves the range"),
    (lambda: excess_risk.crossing_time(0.1, "emp", 0.5, 1e-300, 1e300, 1.0), "gamma = alpha / bet"),
    (lambda: excess_risk.log_excess_risk(1e300, "emp", 0.5, 1e300, 0, 1.0), "2 beta t leaves the"),
    (lambda: delay.crossings(-0.5, 0.0, 0.1), "lam must be positive, not -0.5"),
    (lambda: delay.delay_leading(0.5, -1.0), "gamma must not be negative, not -1.0"),
    (lambda: excess_risk.crossing_s(0.0, "emp", 0.5, 0.0), "level must be positive, not 0.0"),
    (lambda: excess_risk.crossing_s(0.1, "test", 0.5, 0.0), "'emp' or 'gen', not 'test'"),
    (lambda: excess_risk.crossing_time(0.1, "emp", 0.5, 0.0, 0.0, 1.0), "beta must be positive"),
    (lambda: excess_risk.crossing_time(0.1, "emp", 0.5, 1.0, 0.0, -1.0), "C0 must be positive"),
    (lambda: asymptotics.edge_constants(0.5, 1.0, -1.0, 1.0), "alpha must not be negative"),
    (lambda: bayes_risk.bayes_excess_risk(1.0, "gen", 0.5, 0.0, 1.0), "gamma must be positive"),
    (
        lambda: validity_report(0.5, 0.0, 0.1, None, None, 1.5),
        "covariance_share must be at most 1, not 1.5",
    ),
    (lambda: validity_report(0.5, 0.0, 0.1, 0), "d must be positive, not 0.0"),
    (lambda: LinearModel(n=1), "n must be at least 2, not 1"),
    (lambda: LinearModel(sigma2=0.0), "sigma2 must be positive, not 0.0"),
    (lambda: LinearModel(s0=-1.0), "s0 must not be negative, not -1.0"),
    (lambda: summary_table(summary_model(), -1), "seeds must not be negative, not -1"),
    (lambda: summary_table(LinearModel(eps=1e6), 0), "eps = 1000000.0 is too loose"),
    (lambda: summary_table(LinearModel(n=20, sigma2=1.0), 1), "has no uncertainty peak"),
    (lambda: residual_moments(system(), -1.0, "gen"), "s must not be negative"),
    (lambda: risk_crossing(system(), 0.0, "gen"), "risk must be positive, not 0.0"),
]


def system() -> Any:
    return sample_system(LinearModel(n=4), 0.5, np.random.default_rng(0))


@pytest.mark.parametrize(("mistake", "message"), MISTAKES, ids=[text for _, text in MISTAKES])
def test_mistakes_name_the_value(mistake: Callable[[], Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        mistake()
    assert isinstance(caught.value, ValueError)
