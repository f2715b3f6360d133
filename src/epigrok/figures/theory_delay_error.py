"""How far each delay formula is off, over aspect ratio and tolerance; from `delay_error_table`."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator
from scipy.special import expit, logit

from epigrok.figures.catalogue import register_figure
from epigrok.figures.drawn_figure import DrawnFigure, listed
from epigrok.figures.style import TEXT_WIDTH, VERMILION, label_panel, publication_style
from epigrok.tables.store import SweepStore
from epigrok.theory.summary import Table, delay_error_table

_FORMULAS = {
    "leading": "leading order (paper)",
    "lambert": "Lambert W",
    "edge_newton_1": "edge-Newton, 1 step",
    "edge_newton_3": "edge-Newton, 3 steps",
}
_BOUNDARIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
_TICKS = ("1e-6", "1e-5", "1e-4", "0.1 %", "1 %", "10 %", "30 %", "100 %", "3×", "10×", "100×")
_CONTOURS = {0.01: "dotted", 0.1: "dashdot", 1.0: "solid"}
_LAMBDA_TICKS = (0.01, 0.1, 0.5, 0.9, 0.99, 0.999)


def draw_delay_error() -> DrawnFigure:
    """The error maps from very small to order-one tolerances and aspect ratios close to 1."""
    lams = expit(np.linspace(logit(0.01), logit(0.999), 64))
    table = delay_error_table(lams, np.geomspace(1e-12, 0.5, 64))
    caption = delay_error_caption(table)
    title = "How far each formula for the delay is off"
    figure = delay_error_figure(table)
    return DrawnFigure("theory-delay-error", title, caption, figure, listed(table))


def delay_error_figure(table: Table) -> Figure:
    """One map of the relative error per formula."""
    with publication_style():
        figure = Figure(figsize=(TEXT_WIDTH, 5.1), layout="constrained")
        panels = figure.subplots(2, 2, sharex=True, sharey=True)
        norm = BoundaryNorm(_BOUNDARIES, ncolors=256, extend="both")
        for axes, letter, (formula, title) in zip(panels.flat, "abcd", _FORMULAS.items()):
            mesh = _draw_map(axes, table, formula, norm)
            label_panel(axes, letter, title)
        colourbar = figure.colorbar(mesh, ax=panels, ticks=_BOUNDARIES, shrink=0.95)
        colourbar.ax.set_yticklabels(_TICKS)
        colourbar.set_label("|relative error| of the EU-peak delay")
        for axes in panels[1]:
            axes.set_xlabel(r"aspect ratio $\lambda = d/n$")
        for axes in panels[:, 0]:
            axes.set_ylabel(r"tolerance $\epsilon / C_0$")
    return figure


def delay_error_caption(table: Table) -> str:
    """What the error maps show, with the parameters they were drawn for."""
    usual = (table["eps_over_C0"] <= 1e-3) & (table["lam"] >= 0.1) & (table["lam"] <= 0.99)
    worst = {name: np.max(np.abs(table[f"relative_error_{name}"][usual])) for name in _FORMULAS}
    return (
        "Error of each formula for the delay between training and generalisation EU peaks, "
        "relative to the exact delay of the Marchenko-Pastur limit; contours at 1 % (dotted), "
        "10 % (dash-dot) and 100 % (solid). The leading-order formula always over-estimates and "
        "needs ε/C₀ ≪ (1 - √λ)³/4 (dashed), which recedes as λ → 1. White: no value. "
        "Largest error of the plotted points with 0.1 ≤ λ ≤ 0.99 and ε/C₀ ≤ 0.001: "
        + ", ".join(f"{title} {_percent(worst[name])}" for name, title in _FORMULAS.items())
        + f". Parameter: γ = σ²/(nτ²) = {table['gamma'][0]:g}."
    )


def _percent(error: float) -> str:
    return f"{100 * error:.0f} %" if error > 1.0 else f"{100 * error:.2g} %"


def _draw_map(axes: Axes, table: Table, formula: str, norm: BoundaryNorm) -> QuadMesh:
    lams, eps = np.unique(table["lam"]), np.unique(table["eps_over_C0"])
    error = np.abs(table[f"relative_error_{formula}"]).reshape(lams.size, eps.size)
    mesh = axes.pcolormesh(
        lams, eps, np.ma.masked_invalid(error.T), norm=norm, cmap="cividis_r", rasterized=True
    )
    for level, style in _CONTOURS.items():
        if np.nanmin(error) < level < np.nanmax(error):
            axes.contour(
                lams, eps, error.T, [level], colors="black", linewidths=0.8, linestyles=style
            )
    axes.plot(lams, (1 - np.sqrt(lams)) ** 3 / 4, color=VERMILION, linewidth=1.0, linestyle="--")
    axes.set(xscale="logit", yscale="log", xlim=(lams[0], lams[-1]), ylim=(eps[0], eps[-1]))
    axes.xaxis.set_major_locator(FixedLocator(_LAMBDA_TICKS))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(visible=False)
    return mesh


@register_figure(
    "theory-delay-error",
    "the solvable model: how far each delay formula is off",
    place=100,
    shows_runs=False,
)
def draw_delay_error_of_any_store(store: SweepStore) -> DrawnFigure:
    """The map of errors; the theory is the same for every directory."""
    del store
    return draw_delay_error()
