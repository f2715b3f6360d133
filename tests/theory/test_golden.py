"""Every value of the golden file, computed at high precision by independent means.

Tolerances are those of its `meta`: closed forms 1e-12, quadrature 1e-11, crossings 1e-9 relative;
logarithms 1e-11 (1 + nu_- s) absolute.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epigrok.theory import (
    asymptotics,
    bayes_risk,
    delay,
    flow,
    marchenko_pastur,
    predictive,
    threshold,
)

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden.json").read_text())
CLOSED_FORM = GOLDEN["meta"]["suggested_rtol"]["float64 closed forms"]
QUADRATURE = GOLDEN["meta"]["suggested_rtol"]["G by quadrature"]
CROSSING = GOLDEN["meta"]["suggested_rtol"]["crossings"]


def numbers(row: Mapping[str, str], *names: str) -> list[float]:
    return [float(row[name]) for name in names]


def near(value: Any, rtol: float) -> Any:
    return pytest.approx(np.asarray(value, dtype=np.float64), rel=rtol, abs=0.0)


def described(row: Mapping[str, Any]) -> str:
    return ",".join(f"{name}={row[name]}" for name in list(row)[:3])


def each(key: str) -> Callable[[Any], Any]:
    return pytest.mark.parametrize("row", GOLDEN[key], ids=described)


def test_constants() -> None:
    expected = {name: float(value) for name, value in GOLDEN["constants"].items()}
    assert near(expected["c_peak"], CLOSED_FORM) == threshold.PEAK_LEVEL
    assert near(expected["c_grok_paper"], CLOSED_FORM) == threshold.GROK_LEVEL
    assert near(expected["accuracy_at_eps_over_8"], CLOSED_FORM) == threshold.GROK_ACCURACY
    assert near(expected["c_grok_exact_95"], CLOSED_FORM) == threshold.GROK_LEVEL_EXACT_95
    assert near(expected["erfinv_half"], CLOSED_FORM) == 0.5 / np.sqrt(threshold.PEAK_LEVEL)
    assert near(expected["erfinv_0.95"], CLOSED_FORM) == 0.5 / np.sqrt(
        threshold.GROK_LEVEL_EXACT_95
    )
    assert near(expected["ln2"], CLOSED_FORM) == threshold.binary_entropy(0.5)


@each("mp_transforms")
def test_transforms(row: dict[str, str]) -> None:
    lam, s, log_G, log_M = numbers(row, "lambda", "s", "log_G", "log_M")
    tolerance = 1e-11 * (1.0 + marchenko_pastur.mp_edges(lam)[0] * s)
    assert abs(marchenko_pastur.mp_log_G(s, lam) - log_G) < tolerance
    assert abs(marchenko_pastur.mp_log_M(s, lam) - log_M) < tolerance


@each("mp_resolvent")
def test_resolvent(row: dict[str, str]) -> None:
    lam, gamma, expected = numbers(row, "lambda", "gamma", "E_inv_nu_plus_gamma")
    assert marchenko_pastur.mp_resolvent(lam, gamma) == near(expected, CLOSED_FORM)
    by_quadrature = marchenko_pastur.mp_expect(lambda nu: 1.0 / (nu + gamma), lam)
    assert by_quadrature == near(expected, QUADRATURE)


@each("crossings")
def test_crossings(row: dict[str, str]) -> None:
    parameters = numbers(row, "lambda", "gamma", "eps_over_C0")
    exact = delay.crossings(*parameters)
    lambert = delay.crossings_lambert(*parameters)
    for event in ("peak", "grok"):
        for side in ("emp", "gen"):
            expected = float(row[f"s_{side}_{event}"])
            assert getattr(exact, f"s_{side}_{event}") == near(expected, CROSSING)
            expected = float(row[f"s_{side}_lambert_{event}"])
            assert getattr(lambert, f"s_{side}_{event}") == near(expected, CLOSED_FORM)
        expected = float(row[f"delta_s_{event}"])
        assert getattr(exact, f"delta_s_{event}") == near(expected, CROSSING)
    paper = float(row["delta_s_paper"])
    assert delay.delay_leading(*parameters[:2]) == near(paper, CLOSED_FORM)


@each("crossings_lambda_ge_1")
def test_crossings_with_more_weights_than_data(row: dict[str, str]) -> None:
    exact = delay.crossings(*numbers(row, "lambda", "gamma", "eps_over_C0"))
    assert exact.s_emp_peak == near(float(row["s_emp_peak"]), CROSSING)
    assert exact.s_gen_peak == near(float(row["s_gen_peak"]), CROSSING)


@each("closure")
def test_closures(row: dict[str, str]) -> None:
    risk, p, h2 = numbers(row, "L_over_eps", "p", "h2_nats")
    assert threshold.accuracy_closure(risk, 1.0) == near(p, CLOSED_FORM)
    assert threshold.eu_closure(risk, 1.0) == near(h2, CLOSED_FORM)


@each("interval_prob")
def test_interval_probabilities(row: dict[str, str]) -> None:
    m, v, eps, p, q, h2 = numbers(row, "m", "v", "eps", "p", "one_minus_p", "h2_nats")
    inside, outside = threshold.interval_prob(m, v, eps)
    assert inside == near(p, CLOSED_FORM)
    assert outside == near(q, CLOSED_FORM)
    assert threshold.binary_entropy(inside, outside) == near(h2, CLOSED_FORM)


@each("two_component_eu")
def test_two_component_closure(row: dict[str, str]) -> None:
    risk, rho, expected = numbers(row, "L_over_eps", "rho", "eu_nats")
    value = threshold.eu_closure2(2 * risk * (1 - rho), 2 * risk * rho, 1.0)
    assert value == near(expected, CLOSED_FORM)


@each("isotropic_trace")
def test_isotropic_trace(row: dict[str, str]) -> None:
    parameters = numbers(row, "s", "lambda", "gamma", "beta_s0")
    expected = float(row["beta_trace_over_d"])
    assert bayes_risk.isotropic_trace(*parameters) == near(expected, QUADRATURE)


@each("bayes_well_specified")
def test_well_specified_risks(row: dict[str, str]) -> None:
    s, *rest = numbers(row, "s", "lambda", "gamma", "s0_over_tau2")
    gen = bayes_risk.bayes_excess_risk(s, "gen", *rest)
    emp = bayes_risk.bayes_excess_risk(s, "emp", *rest)
    floor = bayes_risk.bayes_risk_floor(*rest[:2])
    for value, name in (
        (gen.total, "gen_excess_over_d_tau2"),
        (emp.quadratic, "emp_excess_quadratic_over_d_tau2"),
        (emp.linear, "emp_excess_linear_over_d_tau2"),
        (floor.gen_minus_noise_over_d_tau2, "gen_floor_minus_half_sigma2_over_d_tau2"),
        (floor.emp_over_sigma2, "emp_floor_over_sigma2"),
    ):
        assert value == near(float(row[name]), QUADRATURE), name


@pytest.mark.parametrize("row", GOLDEN["edge_constants"]["rows"], ids=described)
def test_edge_constants(row: dict[str, str]) -> None:
    lam, nu_minus, nu_plus, k_emp, k_gen = numbers(
        row, "lambda", "nu_minus", "nu_plus", "k_emp", "k_gen"
    )
    assert marchenko_pastur.mp_edges(lam) == near((nu_minus, nu_plus), CLOSED_FORM)
    assert asymptotics.edge_prefactors(lam) == near((k_emp, k_gen), CLOSED_FORM)
    beta, alpha, C0 = 7.0, 0.3, 11.0
    scale = C0 * (2 * beta) ** -1.5
    expected = (k_emp * scale, k_gen * scale, 2 * (beta * nu_minus + alpha))
    assert asymptotics.edge_constants(lam, beta, alpha, C0) == near(expected, CLOSED_FORM)


EXAMPLE = GOLDEN["finite_example"]


def example_array(name: str) -> np.ndarray:
    return np.array(EXAMPLE[name], dtype=np.float64)


@pytest.fixture(scope="module")
def example_flow() -> flow.EigenFlow:
    X = example_array("X")
    y = X @ example_array("w_star") + example_array("noise")
    sigma2, tau2 = numbers(EXAMPLE, "sigma2", "tau2")
    return flow.eigen_flow(X, y, sigma2, tau2, example_array("mu0"), example_array("Sigma0"))


@pytest.mark.parametrize("row", EXAMPLE["times"], ids=described)
def test_finite_example(row: dict[str, Any], example_flow: flow.EigenFlow) -> None:
    t = float(row["t"])
    w_star, x_test = example_array("w_star"), example_array("x_test")
    noise, eps = numbers(EXAMPLE, "sigma_eps2", "eps")
    risks = flow.risks_at(example_flow, t, w_star, noise)
    for value, name in (
        (flow.mean_at(example_flow, t), "mu"),
        (flow.cov_at(example_flow, t), "Sigma"),
        (risks.emp.total, "L_emp"),
        (risks.gen.total, "L_gen"),
        (risks.emp.linear, "excess_emp_linear_term"),
        (risks.gen.linear, "excess_gen_linear_term"),
        (risks.emp.quadratic, "excess_emp_quadratic"),
        (risks.gen.quadratic, "excess_gen_quadratic"),
        (predictive.train_accuracy(example_flow, t, eps), "accuracy_emp"),
        (predictive.train_threshold_eu(example_flow, t, eps), "threshold_eu_emp_mean_nats"),
        (
            predictive.population_accuracy(example_flow, t, x_test, w_star, noise, eps),
            "accuracy_gen_at_x_test_noise_absorbed",
        ),
        (predictive.predictive_eu(example_flow, t, x_test, noise), "eu_gaussian_at_x_test_nats"),
        (flow.trace_at(example_flow, t), "trace_Sigma"),
        (flow.trace_rate_at(example_flow, t), "dtrace_dt"),
    ):
        assert value == near(row[name], CLOSED_FORM), name


def test_finite_example_in_the_limit(example_flow: flow.EigenFlow) -> None:
    noise = float(EXAMPLE["sigma_eps2"])
    risks = flow.risks_at(example_flow, 0.0, example_array("w_star"), noise)
    assert example_flow.mu_inf == near(EXAMPLE["mu_inf"], CLOSED_FORM)
    assert risks.emp.floor == near(float(EXAMPLE["L_emp_inf"]), CLOSED_FORM)
    assert risks.gen.floor == near(float(EXAMPLE["L_gen_inf"]), CLOSED_FORM)
