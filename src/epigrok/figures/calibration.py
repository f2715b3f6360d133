"""Calibration diagram: how often predictions of each confidence are right."""

from typing import Any

import numpy as np

from epigrok.config.posterior import POINT
from epigrok.config.splits import in_order
from epigrok.errors import UserError
from epigrok.figures.catalogue import register_figure
from epigrok.figures.drawn_figure import DrawnFigure, columns
from epigrok.figures.panels import add_legend, setting_panels, split_handles, splits_sentence
from epigrok.figures.settings import choice_note, shown_settings
from epigrok.figures.style import BLACK, look_of_split, publication_style
from epigrok.tables.groups import Setting
from epigrok.tables.sql_text import quoted_text
from epigrok.tables.store import SweepStore

_COLUMNS = ("split", "bin", "count", "accuracy", "confidence")


@register_figure("calibration", "how often predictions of each confidence are right", place=80)
def draw_calibration(store: SweepStore) -> DrawnFigure:
    """A column per setting: accuracy against confidence, and the share of predictions."""
    read = [(setting, _read(setting)) for setting in shown_settings(store)]
    read = [(setting, bins) for setting, bins in read if bins]
    if not read:
        raise UserError(
            f"no run in {store.path} has calibration counts; a run writes them at its last step, "
            "so finish one with `epigrok train`"
        )
    settings = [setting for setting, _ in read]
    rows: list[dict[str, Any]] = []
    sentences = []
    with publication_style():
        figure, panels = setting_panels(settings, 2, 1.7)
        for (setting, bins), (upper, lower) in zip(read, panels.T):
            upper.plot([0, 1], [0, 1], color=BLACK, linewidth=0.7, linestyle="-")
            errors = []
            for split in in_order(row["split"] for row in bins):
                of_split = [row for row in bins if row["split"] == split]
                count, accuracy, confidence = (
                    np.array([row[name] for row in of_split], dtype=np.float64)
                    for name in ("count", "accuracy", "confidence")
                )
                share = count / count.sum()
                upper.plot(confidence, accuracy, **look_of_split(split))
                lower.plot(confidence, share, **look_of_split(split))
                errors.append(f"{split} {(share * np.abs(accuracy - confidence)).sum():.3f}")
                rows += [
                    {**setting.keys(), "posterior": _posterior(setting), **row, "share": part}
                    for row, part in zip(of_split, share.tolist())
                ]
            upper.set(ylim=(-0.03, 1.05), ylabel=f"accuracy of\n{_posterior(setting)}")
            lower.set(xlim=(-0.03, 1.03), xlabel="confidence", ylabel="share of\npredictions")
            lower.set_ylim(bottom=0.0)
            sentences.append(f"{setting.name}: " + ", ".join(errors) + ".")
        add_legend(figure, split_handles(columns(rows)["split"]))
    table = columns(rows)
    caption = (
        "Accuracy of predictions against their confidence, in 15 bins, at the last step, all "
        "answers of all runs of a setting pooled; the diagonal is perfect calibration. Expected "
        f"calibration error: {' '.join(sentences)} {splits_sentence(table['split'], store)}"
        f"{choice_note(store, settings)}"
    )
    return DrawnFigure("calibration", "Calibration", caption, figure, table)


def _posterior(setting: Setting) -> str:
    return setting.posteriors[0] if setting.posteriors else POINT


def _read(setting: Setting) -> list[dict[str, Any]]:
    """Bins of the pooled runs."""
    query = f"""
        select split, bin, sum(count)::bigint, sum(count * accuracy) / sum(count),
            sum(count * confidence) / sum(count)
        from calibration where posterior = {quoted_text(_posterior(setting))}
        group by split, bin order by split, bin"""
    return [dict(zip(_COLUMNS, row)) for row in setting.store.sql(query).fetchall()]
