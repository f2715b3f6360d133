"""The numbers in docs/theory.md are what the code computes."""

import re
from pathlib import Path

import numpy as np
import pytest

from epigrok import theory
from epigrok.theory import bayes_risk, delay, marchenko_pastur, threshold
from epigrok.theory.classifier.convex import (
    Features,
    largest_margin_student,
    logistic_student,
    logistic_student_of_clusters,
)
from epigrok.theory.classifier.least_squares import least_squares_student
from epigrok.theory.delay import crossings, delay_leading

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "theory.md").read_text()


def table_after(heading: str) -> list[list[str]]:
    """Rows of the table whose header line starts with `heading`."""
    lines = PAGE[PAGE.index(f"| {heading} |") :].splitlines()[2:]
    end = next(i for i, line in enumerate(lines) if not line.startswith("|"))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:end]]


def page_has(*texts: str) -> bool:
    return all(text in PAGE for text in texts)


@pytest.mark.parametrize("row", table_after("eps/C0"), ids=lambda row: f"{row[0]}, {row[1]}")
def test_delay_table(row: list[str]) -> None:
    eps, lam, exact = map(float, row[:3])
    peak = crossings(lam, 0.0, eps).delta_s_peak
    assert exact == pytest.approx(peak, rel=1e-4)
    formulas = (
        delay_leading(lam, 0.0),
        delay.crossings_lambert(lam, 0.0, eps).delta_s_peak,
        delay.crossings_edge_newton(lam, 0.0, eps, steps=1).delta_s_peak,
        delay.crossings_edge_newton(lam, 0.0, eps, steps=3).delta_s_peak,
    )
    for text, formula in zip(row[3:], formulas, strict=True):
        stated = float(text.removesuffix(" %")) / 100
        assert stated == pytest.approx(formula / peak - 1, rel=0.05, abs=2e-7)


@pytest.mark.parametrize("row", table_after("rho"), ids=lambda row: row[0])
def test_peak_table(row: list[str]) -> None:
    rho, risk, height = map(float, row)
    risks = risk * np.geomspace(0.9, 1.1, 2001)
    values = threshold.eu_closure2(2 * risks * (1 - rho), 2 * risks * rho, 1.0)
    assert risks[np.argmax(values)] == pytest.approx(risk, rel=1e-3)
    assert values.max() / np.log(2) == pytest.approx(height, abs=6e-4)


@pytest.mark.parametrize(
    ("eps", "low", "high"),
    [(1e-6, 1.28, 2.34), (1e-4, 1.53, 7.4), (1e-3, 1.84, 25.7), (1e-2, 2.67, 316)],
)
def test_ranges_of_the_paper_formula(eps: float, low: float, high: float) -> None:
    lam = np.linspace(0.1, 0.99, 300)
    ratio = delay_leading(lam, 0.0) / crossings(lam, 0.0, eps).delta_s_peak
    assert (ratio.min(), ratio.max()) == pytest.approx((low, high), rel=4e-3)
    assert page_has(f"{low:g}-{high:g} at")


def test_saturation() -> None:
    level = 1e-3 * threshold.PEAK_LEVEL
    assert f"{crossings(1 - 1e-9, 0.0, 1e-3).s_gen_peak:.1f}" == "263518.4"
    assert f"{1 / (np.pi * level**2):.1f}" == "263518.8"
    assert f"{delay_leading(1 - 1e-9, 0.0):.1e}" == "1.7e+20"
    assert page_has("263518.4", "263518.8", r"$1.7 \times 10^{20}$")


def test_relative_delays() -> None:
    times = crossings(0.9, 0.0, [1e-2, 1e-3, 1e-4, 1e-6, 1e-8])
    ratios = times.s_gen_peak / times.s_emp_peak
    assert ratios == pytest.approx([18.9, 14.3, 7.46, 2.80, 1.87], rel=4e-3)
    assert page_has("18.9, 14.3, 7.46,")


def test_gap_from_peak_to_threshold() -> None:
    times = crossings(0.9, 0.0, 1e-6)
    bound = np.log(8 * threshold.PEAK_LEVEL)
    assert f"{bound:.4f}" == "2.1739"
    assert f"{times.s_gen_grok - times.s_gen_peak:.0f}" == "698"
    assert f"{bound / marchenko_pastur.mp_edges(0.9)[0]:.0f}" == "826"
    assert page_has("takes 698 of at most 826")


def test_small_aspect_ratios() -> None:
    times = crossings(0.3, 0.0, 1e-6)
    assert f"{times.s_gen_peak:.1f}" == "44.5"
    assert f"{times.s_emp_grok:.1f}" == "47.6"
    assert page_has("$s = 44.5$", "$s = 47.6$")


def excess(s: float, which: str, gamma: float) -> float:
    return float(bayes_risk.bayes_excess_risk(s, which, 0.5, gamma, 1.0).total)


def test_linear_term() -> None:
    kappa = marchenko_pastur.mp_edges(0.5)[0] + 1e-4  # per unit of s
    rates = [
        -np.log(excess(1.001 * x / kappa, "emp", 1e-4) / excess(0.999 * x / kappa, "emp", 1e-4))
        / (0.002 * x)
        for x in (5, 10, 20, 40)
    ]
    assert rates == pytest.approx([1.28, 1.01, 0.58, 0.54], abs=6e-3)
    for gamma, stated in ((1e-4, 1.6e-10), (1e-3, 2.5e-8), (1e-2, 5.0e-6)):
        s = np.geomspace(5.0, 2000.0, 4000)
        gen = bayes_risk.bayes_excess_risk(s, "gen", 0.5, gamma, 1.0).total
        emp = bayes_risk.bayes_excess_risk(s, "emp", 0.5, gamma, 1.0).total
        flip = gen[np.argmax(emp > gen)]
        assert flip / excess(0.0, "gen", gamma) == pytest.approx(stated, rel=0.05)
        assert flip < 1e-3 * bayes_risk.bayes_risk_floor(0.5, gamma).gen_minus_noise_over_d_tau2


def test_total_risk_decides_accuracy() -> None:
    floor = 900 * bayes_risk.bayes_risk_floor(0.9, 1e-3).gen_minus_noise_over_d_tau2 + 0.5
    assert f"{100 * threshold.accuracy_closure(floor, 1e-3):.1f} %" == "0.6 %"


def test_edge_weights() -> None:
    gamma = np.array([1e-4, 1e-3, 1e-2])
    for lam, stated in ((0.9, [0.96, 0.73, 0.22]), (0.99, [0.20, 0.025, 0.0028])):
        edge = 1 - gamma / (marchenko_pastur.mp_edges(lam)[0] + gamma)
        mean = 1 - gamma * marchenko_pastur.mp_resolvent(lam, gamma)
        assert edge / mean == pytest.approx(stated, rel=0.02)


@pytest.mark.parametrize("row", table_after("n/d"), ids=lambda row: row[0])
def test_tolerance_table(row: list[str]) -> None:
    lam = 1 / float(row[0])
    students = (largest_margin_student(lam), logistic_student([Features(lam)], 0.01))
    for found, (error, ratio) in zip(students, (row[1:3], row[3:5])):
        assert f"{found.generalisation_error:.3f}" == error
        assert f"{found.ratio:.3f}" == ratio
    if row[5] != "-":
        assert f"{largest_margin_student(lam, 0.5).ratio:.3f}" == row[5]
    else:
        assert lam <= 0.5


def test_where_the_ratio_misleads() -> None:
    for per_weight, ratio in ((1.00, 0.5), (1.42, 1.0)):
        assert largest_margin_student(1 / per_weight, 0.5).ratio == pytest.approx(ratio, rel=0.02)
    times = [least_squares_student(s, 2.0, 1e-3, 100.0) for s in (10.0, 100.0, 1e3, np.inf)]
    assert [f"{at.ratio:.3g}" for at in times] == ["2.2", "1.77", "1.14", "0.215"]
    accuracies = [f"{1 - at.generalisation_error:.3f}" for at in times]
    assert accuracies == ["0.517", "0.519", "0.529", "0.661"]
    assert min(at.train_accuracy for at in times) > 0.999
    decays = [logistic_student([Features(0.5)], gamma) for gamma in (1e-6, 0.01, 1.0)]
    assert [f"{at.ratio:.3f}" for at in decays] == ["0.425", "0.398", "0.513"]
    assert min(decays, key=lambda at: at.generalisation_error) is decays[1]
    assert page_has("2.20, 1.77, 1.14", "0.425, 0.398,", "0.517, 0.519, 0.529 and 0.661")


def test_where_the_ratio_is_a_sign() -> None:
    for per_weight, ratio, error in ((2.445, 0.5, 0.165), (10.61, 0.9, 0.046)):
        found = largest_margin_student(1 / per_weight)
        assert found.ratio == pytest.approx(ratio, rel=1e-3)
        assert found.generalisation_error == pytest.approx(error, abs=6e-4)
    ends = [
        logistic_student([Features(0.1), Features(1.0, size**2, 0.0)], 1e-3) for size in (1.0, 1e-3)
    ]
    assert [f"{1 - at.generalisation_error:.2f}" for at in ends] == ["0.73", "0.95"]
    assert [f"{at.ratio:.2f}" for at in ends] == ["0.26", "0.76"]
    assert min(at.train_accuracy for at in ends) > 0.996


def test_clusters() -> None:
    found = [logistic_student_of_clusters(x, 2.0, 1e-3) for x in (0.0, 1.0, 2.0, 3.0, 5.0)]
    assert [f"{1 - at.generalisation_error:.3g}" for at in found] == [
        "0.5", "0.691", "0.93", "0.994", "1",
    ]  # fmt: skip
    assert [f"{at.ratio:.3f}" for at in found] == ["0.232", "0.208", "0.342", "0.655", "0.888"]
    assert f"{found[0].tolerance_watched:.2f}" == "0.16"
    assert f"{found[-1].tolerance_watched:.1f}" == "2.7"
    assert min(at.train_accuracy for at in found) > 0.999
    assert page_has("0.50, 0.69, 0.93, 0.994 and 1", "0.232, 0.208, 0.342, 0.655 and 0.888")


@pytest.mark.parametrize("row", table_after("label"), ids=lambda row: row[0].split("`")[1])
def test_label_table(row: list[str]) -> None:
    for reference in row[1].replace("`", "").split(", "):
        module, _, name = reference.partition(".")
        assert callable(getattr(getattr(theory, module), name)), reference
    assert "::" in row[2]


def test_the_page_names_tests_that_exist() -> None:
    tests = Path(__file__).parents[1]
    named = re.findall(r"`([\w/]*test_\w+\.py)(?:::(\w+))?", PAGE)
    assert len(named) > 20
    for file, name in named:
        assert (tests / file).exists(), file
        assert not name or f"def {name}(" in (tests / file).read_text(), name
