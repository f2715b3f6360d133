"""The four-panel summary of the solvable model, drawn from `theory.summary.summary_table`."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from epigrok.figures.catalogue import register_figure
from epigrok.figures.drawn_figure import DrawnFigure, listed
from epigrok.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY_BLUE,
    TEXT_WIDTH,
    VERMILION,
    label_panel,
    publication_style,
)
from epigrok.tables.store import SweepStore
from epigrok.theory.linear_model import LinearModel, summary_model
from epigrok.theory.summary import LOOSE_EPS_OVER_C0, TRANSITION_LAMBDA, Table, summary_table
from epigrok.theory.threshold import GROK_ACCURACY

_LAMBDA_STYLES: tuple[dict[str, Any], ...] = (
    {"color": SKY_BLUE, "linewidth": 0.8},
    {"color": GREEN, "linewidth": 1.05},
    {"color": BLUE, "linewidth": 1.35},
    {"color": PURPLE, "linewidth": 1.7},
)  # thicker with the aspect ratio: the order survives printing in grey
_SIDE_STYLES: dict[str, Any] = {"emp": (0, (4, 1.5)), "gen": "-"}
_SIDE_NAMES = {"emp": "training", "gen": "generalisation"}
_TIME_LABEL = r"time $s = 2nt/\sigma^2$"
_NUM_FINITE_SYSTEMS = 20
_LN2 = float(np.log(2.0))


def draw_summary(model: LinearModel, num_seeds: int, seed: int = 0) -> DrawnFigure:
    """The summary of `model`, with `num_seeds` finite systems drawn over the limit curves."""
    table, caption = summary_table(model, num_seeds, seed), summary_caption(model, num_seeds)
    title = "The solvable linear model: uncertainty peaks, threshold and delay"
    return DrawnFigure("theory-summary", title, caption, summary_figure(table), listed(table))


def summary_figure(table: Table) -> Figure:
    """The paper's four panels: dynamics, transition, peak before threshold, delay."""
    with publication_style():
        figure = Figure(figsize=(TEXT_WIDTH, 5.4), layout="constrained")
        panels = figure.subplots(2, 2)
        _draw_dynamics(panels[0, 0], table)
        _draw_transition(panels[0, 1], table)
        _draw_threshold(panels[1, 0], table)
        _draw_delay(panels[1, 1], table)
    return figure


def summary_caption(model: LinearModel, num_seeds: int) -> str:
    """What the summary shows, with the parameters it was drawn for."""
    eps_over_C0 = model.eps / model.initial_excess_risk(TRANSITION_LAMBDA)
    bands = (
        f"Bands and points: 10-90 % and median of {num_seeds} exact finite systems of "
        f"n = {model.n} (total risk, two-component closure). "
        if num_seeds
        else ""
    )
    return (
        "Gaussian variational inference in Bayesian linear regression; EU is the epistemic "
        "uncertainty of being right within the tolerance. "
        "(a) The larger the aspect ratio λ = d/n, the further generalisation trails training. "
        f"(b) At λ = {TRANSITION_LAMBDA:g} the generalisation EU peaks within the transition from "
        "interpolation (training above the accuracy threshold) to generalisation. "
        "(c) EU peaks before the accuracy threshold is reached. "
        "(d) The delay between the EU peaks grows steeply as λ → 1; the leading-order formula "
        "bounds it from above, Lambert W and edge-Newton follow it (inset: ratios). "
        "Curves: Marchenko-Pastur limit, closures of the excess risk. "
        f"{bands}Parameters: n = {model.n}, σ² = {model.sigma2:g}, σ_ε² = {model.sigma_eps2:g}, "
        f"τ² = {model.tau2:g}, w* ~ N(0, τ²I), μ₀ = 0, Σ₀ = {model.s0:g} I, ε = {model.eps:g}, "
        f"d = λn; hence γ = σ²/(nτ²) = {model.gamma:.3g}, "
        f"C₀ = {0.5 * (model.tau2 + model.s0):g} d, "
        f"ε/C₀ = {eps_over_C0:.3g} at λ = {TRANSITION_LAMBDA:g}."
    )


def rows(table: Table, **wanted: str | float) -> Table:
    """The rows of `table` whose columns have the wanted values."""
    chosen = np.ones(len(table["value"]), dtype=bool)
    for name, value in wanted.items():
        chosen &= table[name] == value
    return {name: column[chosen] for name, column in table.items()}


def _draw_dynamics(axes: Axes, table: Table) -> None:
    curves = rows(table, panel="dynamics", quantity="risk_over_C0")
    lams = np.unique(curves["lam"])
    for lam, look in zip(lams, _LAMBDA_STYLES, strict=True):
        for side, style in _SIDE_STYLES.items():
            line = rows(curves, source="limit", side=side, lam=lam)
            axes.plot(line["s"], line["value"], linestyle=style, **look)
            _draw_band(axes, rows(curves, source="finite", side=side, lam=lam), look["color"])
    axes.set(xscale="log", yscale="log", xlim=(0.3, 3e5), ylim=(1e-8, 2.0))
    axes.set(xlabel=_TIME_LABEL, ylabel=r"excess risk $\tilde L / C_0$")
    handles = [
        *(
            Line2D([], [], label=rf"$\lambda = {lam:g}$", **look)
            for lam, look in zip(lams, _LAMBDA_STYLES, strict=True)
        ),
        *(
            Line2D([], [], color=BLACK, linestyle=style, label=_SIDE_NAMES[side])
            for side, style in _SIDE_STYLES.items()
        ),
    ]
    axes.legend(handles=handles, loc="lower left")
    label_panel(axes, "a", "training and generalisation dynamics")


def _draw_transition(axes: Axes, table: Table) -> None:
    curves = rows(table, panel="transition")
    start = rows(curves, quantity="s_grok", side="emp")["value"][0]
    end = rows(curves, quantity="s_grok", side="gen")["value"][0]
    axes.axvspan(start, end, color=GREY, alpha=0.15, linewidth=0)
    axes.text(
        np.sqrt(start * end), 1.04, "interpolates,\nnot yet general", ha="center", va="bottom",
        fontsize=6, color="0.3",
    )  # fmt: skip
    for quantity, colour, name, scale in (
        ("accuracy", BLUE, "accuracy", 1.0),
        ("eu_nats", VERMILION, "EU / ln 2", _LN2),
    ):
        for side, style in _SIDE_STYLES.items():
            line = rows(curves, quantity=quantity, side=side, source="limit")
            label = f"{name}, {_SIDE_NAMES[side]}"
            axes.plot(line["s"], line["value"] / scale, color=colour, linestyle=style, label=label)
            finite = rows(curves, quantity=quantity, side=side, source="finite")
            _draw_band(axes, finite, colour, scale)
    for side in _SIDE_STYLES:
        peak = rows(curves, quantity="s_peak", side=side)["value"][0]
        axes.plot(peak, 1.0, marker="v", color=VERMILION, markersize=4, clip_on=False)
    axes.set(xscale="log", xlim=(20, 3.0 * end), ylim=(0.0, 1.2), yticks=np.linspace(0, 1, 6))
    axes.set(xlabel=_TIME_LABEL, ylabel="accuracy, EU / ln 2")
    axes.legend(loc="upper left")
    label_panel(axes, "b", rf"EU peaks in the transition ($\lambda = {TRANSITION_LAMBDA:g}$)")


def _draw_threshold(axes: Axes, table: Table) -> None:
    curves = rows(table, panel="transition", side="gen")
    peak = rows(curves, quantity="s_peak")["value"][0]
    grok = rows(curves, quantity="s_grok")["value"][0]
    for quantity, colour, style, name, scale in (
        ("accuracy", BLUE, "-", "accuracy", 1.0),
        ("eu_nats", VERMILION, (0, (4, 1.5)), "EU / ln 2", _LN2),
    ):
        line = rows(curves, quantity=quantity, source="limit")
        axes.plot(line["s"], line["value"] / scale, color=colour, linestyle=style, label=name)
        _draw_band(axes, rows(curves, quantity=quantity, source="finite"), colour, scale)
    axes.plot(peak, 1.0, marker="v", color=VERMILION, markersize=5, zorder=3)
    axes.plot(grok, GROK_ACCURACY, marker="o", color=BLUE, markersize=4, zorder=3)
    for time, colour in ((peak, VERMILION), (grok, BLUE)):
        axes.axvline(time, color=colour, linewidth=0.7, linestyle=":")
    axes.annotate(
        "", xy=(grok, 0.06), xytext=(peak, 0.06), arrowprops={"arrowstyle": "<->", "linewidth": 0.8}
    )
    axes.text((peak + grok) / 2, 0.08, f"{grok - peak:.0f}", ha="center", va="bottom", fontsize=6.5)
    axes.text(peak, 1.03, "EU peak ", ha="right", va="bottom", fontsize=6.5, color=VERMILION)
    threshold = f" {100 * GROK_ACCURACY:.1f} % accuracy"
    axes.text(grok, 1.03, threshold, ha="left", va="bottom", fontsize=6.5, color=BLUE)
    axes.set(xlim=(0.0, 2.0 * grok), ylim=(0.0, 1.14), yticks=np.linspace(0, 1, 6))
    axes.set(xlabel=_TIME_LABEL, ylabel="generalisation accuracy, EU / ln 2")
    axes.legend(loc="center right")
    label_panel(axes, "c", rf"EU peaks before the threshold ($\lambda = {TRANSITION_LAMBDA:g}$)")


def _draw_delay(axes: Axes, table: Table) -> None:
    curves = rows(table, panel="delay")
    loose = rows(curves, source="loose")
    label = rf"exact, $\epsilon/C_0 = {LOOSE_EPS_OVER_C0:g}$"
    axes.plot(loose["lam"], loose["value"], color=GREY, linewidth=1.0, label=label, zorder=1)
    for source, colour, style, name in (
        ("leading", VERMILION, (0, (4, 1.5)), "leading order (paper)"),
        ("lambert", ORANGE, (0, (1, 1)), "Lambert W"),
        ("limit", BLACK, "-", "exact"),
    ):
        line = rows(curves, source=source)
        axes.plot(line["lam"], line["value"], color=colour, linestyle=style, label=name)
    newton = rows(curves, source="edge_newton")
    axes.plot(
        newton["lam"][4::9], newton["value"][4::9], color=GREEN, linestyle="none", marker="x",
        markersize=4, label="edge-Newton",
    )  # fmt: skip
    finite = rows(curves, source="finite")
    if finite["value"].size:
        below, above = finite["value"] - finite["q10"], finite["q90"] - finite["value"]
        axes.errorbar(
            finite["lam"], finite["value"], yerr=(below, above), color=BLUE, linestyle="none",
            marker="o", markersize=2.5, elinewidth=0.8, capsize=1.5, label="finite systems",
        )  # fmt: skip
    _draw_ratios(axes.inset_axes((0.59, 0.12, 0.39, 0.21)), curves)
    axes.set(yscale="log", xlim=(0.0, 1.02), ylim=(0.02, None))
    axes.set(xlabel=r"aspect ratio $\lambda = d/n$", ylabel=r"EU-peak delay $\Delta s$")
    axes.legend(loc="upper left")
    label_panel(axes, "d", "EU-peak delay: exact and by formula")


def _draw_ratios(axes: Axes, curves: Table) -> None:
    exact = rows(curves, source="limit")
    for source, colour, style in (
        ("leading", VERMILION, (0, (4, 1.5))),
        ("lambert", ORANGE, (0, (1, 1))),
        ("edge_newton", GREEN, "-"),
    ):
        ratio = rows(curves, source=source)["value"] / exact["value"]
        axes.plot(exact["lam"], ratio, color=colour, linestyle=style, linewidth=1.0)
    axes.set(xlim=(0.0, 1.0), ylim=(0.9, 2.5), xticks=(0, 0.5, 1), yticks=(1, 1.5, 2, 2.5))
    axes.tick_params(labelsize=6)
    axes.set_title("formula / exact", fontsize=6.5, pad=2)


def _draw_band(axes: Axes, finite: Table, colour: str, scale: float = 1.0) -> None:
    low, high = finite["q10"] / scale, finite["q90"] / scale
    axes.fill_between(finite["s"], low, high, color=colour, alpha=0.2, linewidth=0)


@register_figure(
    "theory-summary",
    "the solvable model: dynamics, peaks, threshold, delay",
    place=90,
    shows_runs=False,
)
def draw_summary_of_any_store(store: SweepStore) -> DrawnFigure:
    """The summary; the theory is the same for every directory."""
    del store
    return draw_summary(summary_model(), _NUM_FINITE_SYSTEMS)
