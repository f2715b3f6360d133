"""Accuracy and uncertainty against the length and the noise of the context, with the exact floor.

The floor is the exact predictor: the memoriser on splits of training tasks, the generaliser on
splits of unseen tasks.
"""

from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from epigrok.config.posterior import BELIEVES_CLEAN, ORACLES
from epigrok.errors import UserError
from epigrok.figures.catalogue import register_figure
from epigrok.figures.context_curves import ContextCurves, context_curves
from epigrok.figures.curves import Curves, draw_curve
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
    in_context = (s for s in settings_with_uncertainty(store) if s.num_examples > 1)
    usable = [found for setting in in_context if (found := context_curves(setting, axis))]
    name = axis.replace("_", "-")
    if not usable:
        raise UserError(
            f"no run in {store.path} has a {name.replace('-', ' ')} series; make one for an "
            f"in-context run with `epigrok evaluate RUN --series {name}`"
        )
    settings = [found.setting for found in usable]
    rows: list[dict[str, Any]] = []
    sentences = []
    with publication_style():
        figure, panels = setting_panels(settings, len(_LABELS), 1.4)
        for found, column in zip(usable, panels.T):
            for axes, (metric, label) in zip(column, _LABELS.items()):
                rows += _draw_panel(axes, found.setting, found.curves[metric], axis, metric)
                if metric == "accuracy":
                    axes.set(ylabel=label, ylim=(-0.03, 1.05))
                else:
                    label_nats(axes, label, found.setting.posteriors[0])
            column[-1].set_xlabel(_AXIS_LABELS[axis])
            sentences.append(_sentence(found, axis))
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


def _sentence(found: ContextCurves, axis: str) -> str:
    """Where the curves of the hardest split begin and end, and what is not drawn."""
    setting = found.setting
    split, posterior = setting.hardest_split, setting.posteriors[0]
    shown = {label: found.curves[metric][split, posterior] for metric, label in _LABELS.items()}
    first, last = (shown["accuracy"].x[place] for place in (0, -1))
    where, name = f"{setting.name}, {posterior} on {split}", axis.replace("_", " ")
    if first == last:
        values = [f"{label} is {curve.median[0]:.2g}" for label, curve in shown.items()]
        text = f"{where}, at {name} {first:g}: {', '.join(values)}."
    else:
        values = [
            f"{label} goes from {curve.median[0]:.2g} to {curve.median[-1]:.2g}"
            for label, curve in shown.items()
        ]
        text = f"{where}, between {name} {first:g} and {last:g}: {', '.join(values)}."
    return f"{text} {found.note}".rstrip()
