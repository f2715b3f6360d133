"""What label-free signs said of the runs of a sweep at their end: `python -m benchmarks.fates`.

Each held-out split of each run: accuracy, which takes labels, beside the tolerance ratio and its
rivals, which take none. Reads the tables of `fates-small`, and of `paper-tiny` with IVON, in
docs/results, writes a figure and a table beside them.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from matplotlib.figure import Figure
from scipy.stats import rankdata, spearmanr

from epigrok.config.splits import ID_VAL, OOD_TRAIN, OOD_VAL
from epigrok.figures.panels import split_look
from epigrok.figures.style import BLACK, COLUMN_WIDTH, publication_style
from epigrok.monitor import StateRule

RESULTS = Path(__file__).resolve().parents[1] / "docs/results"
GENERAL_FROM, NOT_UP_TO = 0.9, 0.5


@dataclass(frozen=True)
class Tables:
    """The tables of a sweep, and where what is made of them goes."""

    stem: Path
    posteriors: str
    """Of its runs, each of which has one of these that is inferred."""

    def path(self, end: str) -> Path:
        """The file beside them with this ending."""
        return self.stem.with_name(f"{self.stem.name}{end}")


SWEEPS = (
    Tables(RESULTS / "icl-small/fates", "Laplace"),
    Tables(RESULTS / "paper-tiny/ivon", "IVON"),
)
_ENDS = """
with eu as (select run_id, split, arg_max(epistemic_final, step) as inferred,
        arg_max(epistemic_final, step) / max(epistemic_final) as inferred_over_peak
    from '{0}' where posterior in ('laplace', 'ivon') and num_samples <= 16 group by all),
noise as (select run_id, split, arg_max(epistemic_final, step) as weight_noise
    from '{0}' where posterior = 'weight-noise:0.1' and num_samples <= 16 group by all)
select preset, split, accuracy_final as accuracy, tolerance_ratio as ratio, total_final as entropy,
    inferred, inferred_over_peak, weight_noise, t.state = 'generalised' as is_announced
from '{0}' m join '{1}' t using (run_id, preset, step, split)
    join eu using (run_id, split) join noise using (run_id, split)
where posterior = 'point' and step = t.num_steps and t.state <> 'fitting'
order by run_id, split
"""
_SIGNS = {
    "tolerance ratio": ("ratio", 1.0),
    "plain entropy": ("entropy", -1.0),
    "EU, {}": ("inferred", -1.0),
    "EU, {}, over its peak": ("inferred_over_peak", -1.0),
    "EU, weight noise 0.1": ("weight_noise", -1.0),
}
"""The column of each, and whether large (1) or small (-1) values speak for generalisation."""


def ends(tables: Tables) -> dict[str, np.ndarray]:
    """Columns with a row for each split of each run at its end, where training was fitted."""
    query = _ENDS.format(tables.path(".parquet"), tables.path("-tolerance.parquet"))
    found = duckdb.sql(query).fetchnumpy()
    return {name: np.asarray(values) for name, values in found.items()}


def judged(tables: Tables, columns: dict[str, np.ndarray]) -> list[dict[str, str]]:
    """How well each sign orders the sets, and separates those that are general from the others."""
    accuracy = columns["accuracy"]
    is_general, is_not = accuracy >= GENERAL_FROM, accuracy <= NOT_UP_TO
    rows = []
    for name, (column, sign) in _SIGNS.items():
        values = sign * columns[column]
        ranks = rankdata(values[is_general | is_not])
        above = ranks[is_general[is_general | is_not]].sum() - _pairs(is_general.sum())
        rows.append(
            {
                "sign": name.format(tables.posteriors),
                "AUROC": f"{above / is_general.sum() / is_not.sum():.3f}",
                "rank correlation": f"{spearmanr(values, accuracy).statistic:.2f}",
                "general": str(is_general.sum()),
                "not": str(is_not.sum()),
                "all": str(len(accuracy)),
            }
        )
    return rows


def _pairs(number: int) -> float:
    return number * (number + 1) / 2


def draw(columns: dict[str, np.ndarray]) -> Figure:
    """A point for each split of each run; filled where the monitor says *generalised*."""
    presets = sorted(set(columns["preset"]))
    with publication_style():
        size = (COLUMN_WIDTH * len(presets), 0.85 * COLUMN_WIDTH)
        figure = Figure(figsize=size, layout="constrained")
        every = figure.subplots(1, len(presets), sharey=True, squeeze=False)[0]
        for axes, preset in zip(every, presets):
            for split in (ID_VAL, OOD_TRAIN, OOD_VAL):
                look = split_look(split.name, 0)
                is_here = (columns["preset"] == preset) & (columns["split"] == split.name)
                for is_announced in (False, True) if is_here.any() else ():
                    shown = is_here & (columns["is_announced"] == is_announced)
                    axes.plot(
                        columns["accuracy"][shown],
                        columns["ratio"][shown],
                        look["marker"],
                        color=look["color"],
                        markerfacecolor=look["color"] if is_announced else "none",
                        markersize=4,
                        markeredgewidth=0.8,
                        label=f"{split.name}, announced" if is_announced else split.name,
                    )
            axes.axhline(StateRule().threshold, color=BLACK, linewidth=0.8, linestyle=":")
            axes.set(xlabel="accuracy at the end", title=preset if len(presets) > 1 else "")
        every[0].set(ylabel="tolerance ratio (no labels)")
        every[0].legend(loc="upper left")
    return figure


def main() -> None:
    for tables in SWEEPS:
        columns = ends(tables)
        draw(columns).savefig(tables.path(".png"), dpi=160)
        rows = judged(tables, columns)
        with tables.path("-signs.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
