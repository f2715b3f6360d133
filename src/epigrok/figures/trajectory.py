"""Accuracy and epistemic uncertainty over training: does the peak come before the threshold?"""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from epigrok.config.posterior import POINT
from epigrok.config.splits import ID_TRAIN
from epigrok.evaluation.grokking_times import ACCURACY_THRESHOLD
from epigrok.evaluation.schema import ACCURACY_FINAL, EPISTEMIC_FINAL
from epigrok.figures.catalogue import register_figure
from epigrok.figures.curves import Curves, draw_curve, training_curves
from epigrok.figures.drawn_figure import DrawnFigure, columns
from epigrok.figures.panels import (
    add_legend,
    label_nats,
    label_steps,
    setting_panels,
    split_handles,
    split_look,
    splits_sentence,
)
from epigrok.figures.settings import choice_note, pooling_sentence, settings_with_uncertainty
from epigrok.figures.style import BLACK, look_of_split, publication_style
from epigrok.tables.events import Events, setting_events
from epigrok.tables.groups import Setting
from epigrok.tables.store import SweepStore


@register_figure(
    "trajectory", "accuracy and uncertainty over training: the peak and the threshold", place=20
)
def draw_trajectory(store: SweepStore) -> DrawnFigure:
    """A column per setting: accuracy, and the uncertainty of the posterior and of its control."""
    settings = settings_with_uncertainty(store)
    rows: list[dict[str, Any]] = []
    sentences = []
    num_rows = 1 + max(len(setting.posteriors) for setting in settings)
    with publication_style():
        figure, panels = setting_panels(settings, num_rows, 1.45)
        for setting, column in zip(settings, panels.T):
            events = setting_events(setting)
            accuracy = training_curves(setting, ACCURACY_FINAL)
            source = POINT if (setting.splits[0], POINT) in accuracy else setting.posteriors[0]
            rows += _draw_row(column[0], setting, accuracy, source, "accuracy")
            column[0].axhline(ACCURACY_THRESHOLD, color=BLACK, linewidth=0.6, linestyle=":")
            column[0].set(ylabel="accuracy", ylim=(-0.03, 1.05))
            epistemic = training_curves(setting, EPISTEMIC_FINAL)
            for axes, posterior in zip(column[1:], setting.posteriors):
                rows += _draw_row(axes, setting, epistemic, posterior, "epistemic")
                _mark_events(axes, [e for e in events.values() if e.posterior == posterior])
                label_nats(axes, "EU", posterior)
                if (setting.hardest_split, posterior) in events:
                    happened = events[setting.hardest_split, posterior]
                    sentences.append(f"{setting.name}: {happened.sentence()}")
            for axes in column[1 + len(setting.posteriors) :]:
                axes.set_axis_off()
            label_steps(column[len(setting.posteriors)])
            column[len(setting.posteriors)].tick_params(labelbottom=True)
        add_legend(figure, [*split_handles(columns(rows)["split"]), *_event_handles()])
    table = columns(rows)
    caption = (
        "Accuracy of the last answer and its epistemic uncertainty (EU) over training."
        f"{pooling_sentence(settings)} " + " ".join(sentences) + " "
        "The second row of EU, where there is one, is a control: noise on the weights that knows "
        f"nothing of the data. {splits_sentence(table['split'], store)}"
        f"{choice_note(store, settings)}"
    )
    title = "Accuracy and epistemic uncertainty over training"
    return DrawnFigure("trajectory", title, caption, figure, table)


def _draw_row(
    axes: Axes, setting: Setting, curves: Curves, posterior: str, quantity: str
) -> list[dict[str, Any]]:
    rows = []
    for split in setting.splits:
        if (split, posterior) not in curves:
            continue  # its first evaluation is being written
        curve = curves[split, posterior]
        draw_curve(axes, curve, split_look(split, len(curve.x)))
        keys = {**setting.keys(), "quantity": quantity, "split": split, "posterior": posterior}
        rows += curve.rows("step", keys)
    return rows


def _mark_events(axes: Axes, events: list[Events]) -> None:
    for event in events:
        if event.peak_step is None:
            continue
        colour = look_of_split(event.split)["color"]
        axes.plot(
            event.peak_step, event.peak_epistemic, marker="v", color=colour, markersize=5,
            markeredgecolor=BLACK, markeredgewidth=0.5, zorder=4,
        )  # fmt: skip
        if event.generalised_step is not None and event.split != ID_TRAIN.name:
            axes.axvline(event.generalised_step, color=colour, linewidth=0.9, linestyle=":")


def _event_handles() -> list[Line2D]:
    return [
        Line2D([], [], marker="v", color="none", markeredgecolor=BLACK, label="EU peak"),
        Line2D(
            [], [], color=BLACK, linewidth=0.9, linestyle=":",
            label=f"accuracy {ACCURACY_THRESHOLD:g} reached",
        ),
    ]  # fmt: skip
