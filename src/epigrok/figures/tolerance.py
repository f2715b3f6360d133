"""Noise tolerance over training: the label-free ratio under the accuracy it stands for."""

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

from epigrok.config.posterior import POINT
from epigrok.errors import UserError
from epigrok.evaluation.schema import ACCURACY_FINAL, SPLIT, STEP
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
from epigrok.tables.queries import band_query
from epigrok.tables.store import SweepStore

_FITTED = "state <> 'fitting'"
_QUANTITIES = ("accuracy", "tolerance ratio")


@register_figure("tolerance", "the label-free tolerance ratio over training", place=15)
def draw_tolerance(store: SweepStore) -> DrawnFigure:
    """A column per setting: accuracy, and below it what the monitor read without labels."""
    shown = shown_settings(store)
    read = [(setting, ratios) for setting in shown if (ratios := ratio_curves(setting))]
    settings = [setting for setting, _ in read]
    if not read:
        raise UserError(_why_not(store, shown))
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
    """The ratio over training by split; empty if no run tracked it, or none could be read.

    Looks before the training split is fitted are left out, because there the ratio says nothing.
    """
    names = [STEP.name, SPLIT.name]
    looks = f"select run_id, {', '.join(names)}, tolerance_ratio from tolerance where {_FITTED}"
    found = setting.store.sql(band_query(looks, "tolerance_ratio", names, names, []))
    values = dict(found.fetchnumpy())
    values["posterior"] = np.full(len(values["split"]), "")
    return {split: curve for (split, _), curve in curves_along("step", values).items()}


def _why_not(store: SweepStore, shown: Sequence[Setting]) -> str:
    """Why there is no ratio to draw: it was not tracked, or says nothing, or cannot be read."""
    query = "select state, tolerance_ratio, unreadable from tolerance where state is not null"
    looks = [look for setting in shown for look in setting.store.sql(query).fetchall()]
    if not looks:
        return (
            f"no run in {store.path} has tracked noise tolerance; `epigrok monitor RUN` reads it "
            "from the checkpoints of an older one"
        )
    fitted = [look for look in looks if look[0] != "fitting"]
    if not fitted and any(ratio is not None for _, ratio, _ in looks):
        return (
            f"the runs in {store.path} have not fitted their training split yet, and before that "
            "the tolerance ratio says nothing"
        )
    reasons = Counter(reason or "no reason given" for *_, reason in fitted or looks)
    return (
        f"the runs in {store.path} have tracked noise tolerance, but it could not be read at any "
        f"look: {reasons.most_common(1)[0][0]}"
    )


def _accuracy_curves(setting: Setting) -> dict[str, Curve]:
    curves = training_curves(setting, ACCURACY_FINAL)
    names = [name for _, name in curves]
    source = POINT if POINT in names else names[0]
    return {split: curve for (split, name), curve in curves.items() if name == source}


def _sentence(setting: Setting) -> str:
    found = [a for a in announcements(setting.store) if a.split == setting.hardest_split]
    steps = [a.generalised_step for a in found if a.generalised_step is not None]
    ratios = [a.ratio for a in found if a.ratio is not None]
    end = f"its ratio ends at {median(ratios):.2g}" if ratios else "its ratio could not be read"
    if not steps:
        return f"{setting.name}: {setting.hardest_split} was not announced; {end}."
    runs = "" if len(found) == 1 else f" in {len(steps)} of {len(found)} runs"
    return (
        f"{setting.name}: {setting.hardest_split} was announced as generalised at step "
        f"{median(steps):,.0f}{runs}; {end}."
    )
