"""The teaser: uncertainty collapses at the transition, in a trained network and in the theory."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from epigrok.config.posterior import POINT
from epigrok.config.splits import OOD_VAL
from epigrok.evaluation.grokking_times import ACCURACY_THRESHOLD
from epigrok.evaluation.schema import ACCURACY_FINAL, EPISTEMIC_FINAL
from epigrok.figures.catalogue import register_figure
from epigrok.figures.curves import training_curves
from epigrok.figures.drawn_figure import DrawnFigure, columns
from epigrok.figures.panels import label_steps, label_thousands
from epigrok.figures.settings import settings_with_uncertainty
from epigrok.figures.style import (
    BLUE,
    COLUMN_WIDTH,
    GREY,
    ORANGE,
    VERMILION,
    literal,
    publication_style,
)
from epigrok.figures.theory import rows as theory_rows
from epigrok.tables.events import setting_events
from epigrok.tables.groups import Setting
from epigrok.tables.store import SweepStore
from epigrok.theory.linear_model import summary_model
from epigrok.theory.summary import TRANSITION_LAMBDA, summary_table

_TRAINING: dict[str, Any] = {"color": GREY, "linestyle": (0, (1, 1)), "label": "training accuracy"}
_HELD_OUT: dict[str, Any] = {"color": BLUE, "linestyle": "-", "label": "held-out accuracy"}
_EPISTEMIC: dict[str, Any] = {"color": VERMILION, "linestyle": (0, (4, 1.5))}
_CONTROL: dict[str, Any] = {"color": ORANGE, "linestyle": (0, (5, 1, 1, 1))}


@register_figure(
    "teaser",
    "uncertainty collapses at the transition, network and theory side by side",
    place=10,
)
def draw_teaser(store: SweepStore) -> DrawnFigure:
    """The setting most accurate on unseen tasks, or else on unseen inputs, beside the theory."""
    settings = settings_with_uncertainty(store)
    setting = max(settings, key=lambda s: (s.hardest_split == OOD_VAL.name, s.accuracy))
    with publication_style():
        figure = Figure(figsize=(COLUMN_WIDTH, 2.35), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        rows = [*_draw_network(left, setting), *_draw_theory(right)]
        left.set(ylabel="accuracy, EU / peak", ylim=(-0.03, 1.1), yticks=np.linspace(0, 1, 6))
        looks = [_TRAINING, _HELD_OUT]
        for name, look in zip(setting.posteriors, (_EPISTEMIC, _CONTROL)):
            looks.append({**look, "label": f"EU / peak, {name}"})
        figure.legend(
            handles=[Line2D([], [], **look) for look in looks], loc="outside lower center", ncols=2
        )
    events = setting_events(setting)
    keys = [(setting.hardest_split, name) for name in setting.posteriors]
    sentences = [events[key].sentence() for key in keys if key in events]
    control = (
        f"The control, {setting.posteriors[1]}, is noise that knows nothing of the data. "
        if len(setting.posteriors) > 1
        else ""
    )
    medians = " (medians)" if setting.num_runs > 1 else ""
    caption = (
        f"Epistemic uncertainty (EU) and accuracy at the transition. Left: {setting.name}, "
        f"{setting.runs}{medians}, held-out split {setting.hardest_split}. "
        f"{' '.join(sentences)} {control}Right: Gaussian variational inference in Bayesian linear "
        f"regression at aspect ratio λ = {TRANSITION_LAMBDA:g}, whose EU peaks at ln 2 before its "
        f"accuracy passes {ACCURACY_THRESHOLD:g}."
    )
    title = "Epistemic uncertainty at the transition: network and theory"
    return DrawnFigure("teaser", title, caption, figure, columns(rows))


def _draw_network(axes: Axes, setting: Setting) -> list[dict[str, Any]]:
    accuracy = training_curves(setting, ACCURACY_FINAL)
    epistemic = training_curves(setting, EPISTEMIC_FINAL)
    split, posteriors = setting.hardest_split, setting.posteriors
    source = POINT if (split, POINT) in accuracy else posteriors[0]
    lines = [
        ("accuracy", setting.splits[0], source, accuracy, _TRAINING),
        ("accuracy", split, source, accuracy, _HELD_OUT),
        *(
            ("epistemic_over_peak", split, name, epistemic, look)
            for name, look in zip(posteriors, (_EPISTEMIC, _CONTROL))
        ),
    ]
    rows = []
    for quantity, of_split, posterior, curves, look in lines:
        if (of_split, posterior) not in curves:
            continue  # its first evaluation is being written
        curve = curves[of_split, posterior]
        scale = 1.0 if quantity == "accuracy" else curve.median.max() or 1.0
        axes.plot(curve.x, curve.median / scale, **look)
        keys = {"panel": setting.preset, "quantity": quantity, "split": of_split}
        for x, value in zip(curve.x.tolist(), (curve.median / scale).tolist()):
            rows.append({**keys, "posterior": posterior, "x": x, "value": value})
    label_steps(axes)
    axes.set_title(literal(setting.preset), fontsize=7, fontweight="bold")
    return rows


def _draw_theory(axes: Axes) -> list[dict[str, Any]]:
    table = theory_rows(summary_table(summary_model(), num_seeds=0), panel="transition")
    rows = []
    for quantity, side, scale, look in (
        ("accuracy", "emp", 1.0, _TRAINING),
        ("accuracy", "gen", 1.0, _HELD_OUT),
        ("eu_nats", "gen", float(np.log(2.0)), _EPISTEMIC),
    ):
        line = theory_rows(table, quantity=quantity, side=side, source="limit")
        axes.plot(line["s"], line["value"] / scale, **look)
        name = "accuracy" if quantity == "accuracy" else "epistemic_over_peak"
        for s, value in zip(line["s"].tolist(), (line["value"] / scale).tolist()):
            rows.append(
                {"panel": "theory", "quantity": name, "split": side, "x": s, "value": value}
            )
    end = theory_rows(table, quantity="s_grok", side="gen")["value"][0]
    axes.set(xlim=(0.0, 1.8 * end), xlabel=r"time $s = 2nt/\sigma^2$")
    label_thousands(axes)
    axes.set_title("theory", fontsize=7, fontweight="bold")
    return rows
