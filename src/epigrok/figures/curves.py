"""Medians and bands over the runs of a setting, read from its tables and drawn as lines."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from epigrok.tables.groups import Setting

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """Median over runs along an axis, and the band that holds 95 % of them."""

    x: Array
    median: Array
    lower: Array
    upper: Array
    count: Array
    """Runs behind each point."""

    def rows(self, axis: str, keys: Mapping[str, Any]) -> list[dict[str, Any]]:
        """One row of a figure's table per point."""
        values = zip(self.x, self.median, self.lower, self.upper, self.count)
        return [
            {
                **keys,
                axis: x.item(),
                "median": middle.item(),
                "lower": lower.item(),
                "upper": upper.item(),
                "num_runs": int(count),
            }
            for x, middle, lower, upper, count in values
        ]


Curves = dict[tuple[str, str], Curve]
"""By split and posterior."""


def training_curves(setting: Setting, metric: str) -> Curves:
    """A metric over training; empty if the runs do not have it."""
    return curves_along("step", setting.store.median_and_band(metric, step=None).fetchnumpy())


def curves_along(axis: str, found: Mapping[str, Any]) -> Curves:
    """The curves in a result of `median_and_band`, which is sorted along its axis."""
    splits, posteriors = found["split"], found["posterior"]
    points = list(zip(splits, posteriors, found[axis]))
    assert len(set(points)) == len(points), "groups that nothing tells apart are on one curve"
    columns = (axis, "median", "lower", "upper", "count")
    return {
        key: Curve(*(np.asarray(found[name], dtype=np.float64)[is_here] for name in columns))
        for key in dict.fromkeys(zip(splits, posteriors))
        for is_here in [(splits == key[0]) & (posteriors == key[1])]
    }


def draw_curve(axes: Axes, curve: Curve, look: Mapping[str, Any]) -> None:
    """Draw a line, and its band if there are several runs."""
    axes.plot(curve.x, curve.median, **look)
    if curve.count.max() > 1:
        axes.fill_between(
            curve.x, curve.lower, curve.upper, color=look["color"], alpha=0.18, linewidth=0
        )
