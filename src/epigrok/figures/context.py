"""Accuracy and uncertainty against the length and the noise of the context, with the exact floor.

The floor is the exact predictor: the memoriser on splits of training tasks, the generaliser on
splits of unseen tasks.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from epigrok.config.posterior import BELIEVES_CLEAN, ORACLES
from epigrok.errors import UserError
from epigrok.figures.catalogue import register_figure
from epigrok.figures.curves import Curves, curves_along, draw_curve
from epigrok.figures.drawn_figure import DrawnFigure, columns
from epigrok.figures.panels import (
    add_legend,
    label_nats,
    setting_panels,
    split_handles,
    split_look,
    splits_sentence,
)
from epigrok.figures.settings import choice_note, pooling_sentence, settings_with_uncertainty
from epigrok.figures.style import BLACK, look_of_split, publication_style
from epigrok.tables.groups import Setting, known_splits
from epigrok.tables.store import SweepStore

_LABELS = {"accuracy": "accuracy", "epistemic": "EU", "aleatoric": "AU"}
_FLOOR: dict[str, Any] = {"linestyle": (0, (1, 2)), "linewidth": 1.0}
_BELIEVER: dict[str, Any] = {"linestyle": (0, (6, 2, 1, 2)), "linewidth": 0.7}
_AXIS_LABELS = {
    "context_length": "context length k (examples)",
    "context_noise": "context noise ρ",
}
_MEANINGS = {
    "context_length": "The context length counts the query as one of its examples.",
    "context_noise": "The context noise is the probability that a context answer is replaced.",
}
_TITLE = "Accuracy and uncertainty against the {} of the context"


@register_figure(
    "context-length",
    "accuracy, EU and AU against context length, with the exact floor",
    place=50,
)
def draw_context_length(store: SweepStore) -> DrawnFigure:
    """A column per setting: accuracy, EU and AU against context length."""
    return _draw_series(store, "context_length")


@register_figure(
    "context-noise",
    "accuracy, EU and AU against context noise, with the exact floor",
    place=60,
)
def draw_context_noise(store: SweepStore) -> DrawnFigure:
    """A column per setting: accuracy, EU and AU against context noise."""
    return _draw_series(store, "context_noise")


def _draw_series(store: SweepStore, axis: str) -> DrawnFigure:
    read = [
        (setting, {metric: _read(setting, axis, metric) for metric in _LABELS})
        for setting in settings_with_uncertainty(store)
        if setting.num_examples > 1
    ]
    usable = [
        (replace(setting, posteriors=(posterior,)), curves)
        for setting, curves in read
        if (posterior := _shown_posterior(setting, curves))
    ]
    name = axis.replace("_", "-")
    if not usable:
        raise UserError(
            f"no run in {store.path} has a {name.replace('-', ' ')} series; make one for an "
            f"in-context run with `epigrok evaluate RUN --series {name}`"
        )
    settings = [setting for setting, _ in usable]
    rows: list[dict[str, Any]] = []
    sentences = []
    with publication_style():
        figure, panels = setting_panels(settings, len(_LABELS), 1.4)
        for (setting, curves), column in zip(usable, panels.T):
            for axes, (metric, label) in zip(column, _LABELS.items()):
                rows += _draw_panel(axes, setting, curves[metric], axis, metric)
                if metric == "accuracy":
                    axes.set(ylabel=label, ylim=(-0.03, 1.05))
                else:
                    label_nats(axes, label, setting.posteriors[0])
            column[-1].set_xlabel(_AXIS_LABELS[axis])
            sentences.append(_sentence(setting, curves, axis))
        add_legend(figure, [*split_handles(columns(rows)["split"]), *_exact_handles(axis)])
    table = columns(rows)
    kind = name.removeprefix("context-")
    caption = (
        f"{_TITLE.format(kind)}.{pooling_sentence(settings)} {' '.join(sentences)} "
        f"{_MEANINGS[axis]} Thin lines are exact Bayesian predictors, which no model can beat on "
        "average: one that knows the training tasks on id splits, one that considers all tasks on "
        "ood splits. They have no EU; a model with less AU than theirs is too sure of itself. "
        f"{splits_sentence(table['split'], store)}{choice_note(store, settings)}"
    )
    return DrawnFigure(name, _TITLE.format(kind), caption, figure, table)


def _shown_posterior(setting: Setting, curves: dict[str, Curves]) -> str | None:
    """The posterior that other figures show, or else the first one in this series."""
    found = sorted({posterior for _, posterior in curves["epistemic"]})
    others = [name for name in found if not name.startswith(ORACLES)]
    for name in (*setting.posteriors, *others):
        if all((setting.hardest_split, name) in of_metric for of_metric in curves.values()):
            return name
    return None


def _read(setting: Setting, axis: str, metric: str) -> Curves:
    """Curves of the newest evaluated step; context lengths may also come from training."""
    store = setting.store
    (newest,) = store.sql(f"select max(step) from {axis}").fetchall()[0]
    if newest is not None:
        found = store.median_and_band(metric, [axis], step=newest, table=axis)
        return curves_along(axis, found.fetchnumpy())
    curves: Curves = {}
    for table in ("latest_positions", "exact_positions") if axis == "context_length" else ():
        found = store.median_and_band(metric, [axis], table=table)
        curves |= curves_along(axis, found.fetchnumpy())
    return curves


def _draw_panel(
    axes: Axes, setting: Setting, curves: Curves, axis: str, metric: str
) -> list[dict[str, Any]]:
    rows = []
    seen = {split.name for split in known_splits(setting.store).values() if split.tasks_seen}
    memorising, generalising = ORACLES
    for split in setting.splits[1:]:
        posterior, floor = setting.posteriors[0], memorising if split in seen else generalising
        looks = {posterior: split_look(split, setting.num_examples)}
        if metric != "epistemic":
            colour = {"color": look_of_split(split)["color"]}
            looks[floor] = {**colour, **_FLOOR}
            looks[floor + BELIEVES_CLEAN] = {**colour, **_BELIEVER}
        for name, look in looks.items():
            if (split, name) in curves:
                draw_curve(axes, curves[split, name], look)
                keys = {**setting.keys(), "quantity": metric, "split": split, "posterior": name}
                rows += curves[split, name].rows(axis, keys)
    return rows


def _exact_handles(axis: str) -> Sequence[Artist]:
    handles = [Line2D([], [], color=BLACK, label="exact predictor", **_FLOOR)]
    if axis == "context_noise":
        label = "exact, believing it clean"
        handles.append(Line2D([], [], color=BLACK, label=label, **_BELIEVER))
    return handles


def _sentence(setting: Setting, curves: dict[str, Curves], axis: str) -> str:
    """Where the curves of the hardest split begin and end."""
    split, posterior = setting.hardest_split, setting.posteriors[0]
    shown = {label: curves[metric][split, posterior] for metric, label in _LABELS.items()}
    parts = [
        f"{label} goes from {curve.median[0]:.2g} to {curve.median[-1]:.2g}"
        for label, curve in shown.items()
    ]
    first, *_, last = shown["accuracy"].x
    between = f"{axis.replace('_', ' ')} {first:g} and {last:g}"
    return f"{setting.name}, {posterior} on {split}, between {between}: {', '.join(parts)}."
