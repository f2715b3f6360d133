"""Which exact predictor a model resembles over training: the memoriser or the generaliser."""

from typing import Any

from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, StrMethodFormatter

from epigrok.config.posterior import POINT
from epigrok.errors import UserError
from epigrok.figures.catalogue import register_figure
from epigrok.figures.curves import Curves, draw_curve, training_curves
from epigrok.figures.drawn_figure import DrawnFigure, columns
from epigrok.figures.panels import (
    add_legend,
    label_steps,
    setting_panels,
    split_handles,
    split_look,
    splits_sentence,
)
from epigrok.figures.settings import choice_note, pooling_sentence, shown_settings
from epigrok.figures.style import BLACK, ORANGE, PURPLE, publication_style
from epigrok.tables.groups import Setting
from epigrok.tables.store import SweepStore

_DISTANCES: dict[str, dict[str, Any]] = {
    "kl_memorising": {"color": PURPLE, "linestyle": (0, (4, 1.5)), "label": "KL to the memoriser"},
    "kl_generalising": {"color": ORANGE, "linestyle": "-", "label": "KL to the generaliser"},
}
_POSITION = "relative_position"


@register_figure(
    "oracle-distance",
    "from the memorising to the generalising exact predictor over training",
    place=70,
)
def draw_oracle_distance(store: SweepStore) -> DrawnFigure:
    """A column per setting: distance from both exact predictors, and the position between them."""
    found = []
    for setting in shown_settings(store):
        curves = {name: training_curves(setting, name) for name in (*_DISTANCES, _POSITION)}
        posterior = _compared_posterior(setting, curves)
        if posterior is not None:
            found.append((setting, curves, posterior))
    settings = [setting for setting, _, _ in found]
    if not settings:
        raise UserError(
            f"no run in {store.path} has exact predictors to compare with; in-context runs have "
            "them, such as `epigrok train icl-tiny`, unless evaluation.oracle_noise is 0"
        )
    rows: list[dict[str, Any]] = []
    sentences = []
    with publication_style():
        figure, panels = setting_panels(settings, 2, 1.7)
        for (setting, curves, posterior), (upper, lower) in zip(found, panels.T):
            split = setting.hardest_split
            keys = {**setting.keys(), "posterior": posterior}
            for name, look in _DISTANCES.items():
                curve = curves[name][split, posterior]
                draw_curve(upper, curve, look)
                rows += curve.rows("step", {**keys, "quantity": name, "split": split})
            for each in setting.splits:
                if (each, posterior) not in curves[_POSITION]:
                    continue  # the exact predictors agree there
                curve = curves[_POSITION][each, posterior]
                draw_curve(lower, curve, split_look(each, len(curve.x)))
                rows += curve.rows("step", {**keys, "quantity": _POSITION, "split": each})
            upper.set(yscale="log", ylabel=f"symmetric KL\non {split} (nats)")
            lowest, highest = upper.get_ylim()
            # Within a decade there may be no power of ten to label.
            between = (3,) if highest > 10 * lowest else (2, 3, 4, 6)
            upper.yaxis.set_minor_locator(LogLocator(subs=between))
            for set_formatter in (upper.yaxis.set_major_formatter, upper.yaxis.set_minor_formatter):
                set_formatter(StrMethodFormatter("{x:g}"))
            lower.set(ylim=(-1.15, 1.15), yticks=(-1, 0, 1), ylabel="relative position")
            lower.set_yticklabels(["-1\ngeneraliser", "0", "memoriser\n+1"], fontsize=6)
            lower.axhline(0.0, color=BLACK, linewidth=0.6, linestyle=":")
            label_steps(lower)
            if (split, posterior) in curves[_POSITION]:
                values = curves[_POSITION][split, posterior].median
                sentences.append(
                    f"{setting.name} on {split}: relative position from {values.max():+.2f} at "
                    f"most to {values[-1]:+.2f} at the end."
                )
        drawn = {row["split"] for row in rows}
        handles = [Line2D([], [], **look) for look in _DISTANCES.values()]
        add_legend(figure, [*handles, *split_handles(drawn)])
    caption = (
        "Distance of the model's predictions (all answers) from the exact Bayesian predictors, one "
        "that knows only the training tasks (memoriser) and one that considers all tasks "
        "(generaliser), and the model's relative position between them; no labels are used."
        f"{pooling_sentence(settings)} {' '.join(sentences)} "
        f"{splits_sentence(drawn, store)}{choice_note(store, settings)}"
    )
    title = "From the memorising to the generalising exact predictor"
    return DrawnFigure("oracle-distance", title, caption, figure, columns(rows))


def _compared_posterior(setting: Setting, curves: dict[str, Curves]) -> str | None:
    """`point` if tracked, else the posterior that figures show, else any; None without one."""
    tracked = [
        posterior for split, posterior in curves["kl_memorising"] if split == setting.hardest_split
    ]
    wanted = (POINT, *setting.posteriors, *tracked)
    return next((posterior for posterior in wanted if posterior in tracked), None)
