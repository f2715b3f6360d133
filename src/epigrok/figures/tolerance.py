"""Noise tolerance over training: the label-free ratio under the accuracy it stands for."""

from statistics import median
from typing import Any

import numpy as np

from epigrok.config.posterior import POINT
from epigrok.errors import UserError
from epigrok.evaluation.schema import ACCURACY_FINAL
from epigrok.figures.catalogue import register_figure
from epigrok.figures.curves import Curve, curves_along, draw_curve, training_curves
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
from epigrok.figures.style import publication_style
from epigrok.tables.announcements import announcements
from epigrok.tables.groups import Setting
from epigrok.tables.store import SweepStore

_QUANTITIES = ("accuracy", "tolerance ratio")


@register_figure("tolerance", "the label-free tolerance ratio over training", place=15)
def draw_tolerance(store: SweepStore) -> DrawnFigure:
    """A column per setting: accuracy, and below it what the monitor read without labels."""
    read = [(setting, ratio_curves(setting)) for setting in shown_settings(store)]
    read = [(setting, ratios) for setting, ratios in read if ratios]
    settings = [setting for setting, _ in read]
    if not read:
        raise UserError(
            f"no run in {store.path} has tracked noise tolerance; `epigrok monitor RUN` reads it "
            "from the checkpoints of an older one"
        )
    rows: list[dict[str, Any]] = []
    with publication_style():
        figure, panels = setting_panels(settings, len(_QUANTITIES), 1.45)
        for (setting, ratios), column in zip(read, panels.T):
            curves = (_accuracy_curves(setting), ratios)
            for axes, quantity, of_split in zip(column, _QUANTITIES, curves):
                for split, curve in of_split.items():
                    draw_curve(axes, curve, split_look(split, len(curve.x)))
                    keys = {**setting.keys(), "quantity": quantity, "split": split}
                    rows += curve.rows("step", keys)
                axes.set(ylabel=quantity, ylim=(-0.03, None))
            label_steps(column[-1])
        add_legend(figure, split_handles(columns(rows)["split"]))
    table = columns(rows)
    caption = (
        "Accuracy of the last answer, and the tolerance ratio: how much noise on the weights the "
        "answers of a split tolerate, over what those of the training split do. Near 1 where one "
        f"rule covers both; it uses no label of the split.{pooling_sentence(settings)} "
        + " ".join(map(_sentence, settings))
        + f" {splits_sentence(table['split'], store)}{choice_note(store, settings)}"
    )
    return DrawnFigure("tolerance", "Noise tolerance over training", caption, figure, table)


def ratio_curves(setting: Setting) -> dict[str, Curve]:
    """The ratio over training by split; empty if the runs did not track it."""
    found = setting.store.median_and_band("tolerance_ratio", step=None, table="tolerance")
    values = dict(found.fetchnumpy())
    values["posterior"] = np.full(len(values["split"]), "")
    return {split: curve for (split, _), curve in curves_along("step", values).items()}


def _accuracy_curves(setting: Setting) -> dict[str, Curve]:
    curves = training_curves(setting, ACCURACY_FINAL)
    names = [name for _, name in curves]
    source = POINT if POINT in names else names[0]
    return {split: curve for (split, name), curve in curves.items() if name == source}


def _sentence(setting: Setting) -> str:
    found = [a for a in announcements(setting.store) if a.split == setting.hardest_split]
    steps = [a.generalised_step for a in found if a.generalised_step is not None]
    ratios = [a.ratio for a in found if a.ratio is not None]
    end = f"its ratio ends at {median(ratios):.2g}" if ratios else "its ratio cannot be read"
    if not steps:
        return f"{setting.name}: {setting.hardest_split} was not announced; {end}."
    runs = "" if len(found) == 1 else f" in {len(steps)} of {len(found)} runs"
    return (
        f"{setting.name}: {setting.hardest_split} was announced as generalised at step "
        f"{median(steps):,.0f}{runs}; {end}."
    )
