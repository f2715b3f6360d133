"""A sweep over two fields as maps: accuracy, and the decomposition of uncertainty."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from epigrok.config.splits import ID_TRAIN, in_order
from epigrok.errors import UserError
from epigrok.evaluation.schema import EPISTEMIC_FINAL, TOTAL_FINAL
from epigrok.figures.catalogue import register_figure
from epigrok.figures.drawn_figure import DrawnFigure, columns
from epigrok.figures.panels import splits_sentence
from epigrok.figures.settings import MAX_SETTINGS, band_note, seeds_text
from epigrok.figures.style import TEXT_WIDTH, literal, publication_style
from epigrok.tables.fields import by_size, distinguishing_fields, field_label, value_label
from epigrok.tables.groups import configs_by_preset, shown_posteriors, varying_seeds
from epigrok.tables.store import SweepStore

_FRACTION = "task.train_fraction"
_COLOURS = "cividis"
"""Readable with every common kind of colour vision; its lightness grows with the value."""
_UNFINISHED = "*"
_OWN_COLOURS = " In nats, each preset has a scale of colours of its own."
_NOTES = {
    "missing": "Hatched cells are missing: no run there has been evaluated.",
    "unfinished": f"Cells with {_UNFINISHED} hold runs that are not finished.",
}
SHARE = "epistemic share"
_METRICS = {SHARE: f"{EPISTEMIC_FINAL}/{TOTAL_FINAL}"}
_SHARES = ("accuracy", SHARE)


@dataclass(frozen=True)
class Grid:
    """The runs of one preset, which differ in two fields and their seeds."""

    preset: str
    posterior: str
    fields: Sequence[str]
    """Down and across."""
    values: tuple[list[Any], list[Any]]
    num_unfinished: Mapping[tuple[Any, Any], int]
    """Cell -> its runs that are not finished."""
    varying_seeds: tuple[str, ...]

    def axis(self, which: int) -> tuple[str, list[str]]:
        """Label and ticks of one direction."""
        field = self.fields[which]
        label = field_label(field) + (" of inputs" if field == _FRACTION else "")
        return label, [value_label(field, value) for value in self.values[which]]


@dataclass(frozen=True)
class Cell:
    """Median over the runs of a cell, and the band that holds 95 % of them."""

    median: float
    lower: float
    upper: float
    num_runs: int


_NO_RUN = Cell(np.nan, np.nan, np.nan, 0)


@register_figure("accuracy-heatmaps", "accuracy over the grid of a sweep", place=30)
def draw_accuracy_heatmaps(store: SweepStore) -> DrawnFigure:
    """Accuracy at the end: a row per preset, a column per split."""
    title = "Accuracy over the grid of the sweep"
    return _draw_maps(store, "accuracy-heatmaps", title, {"accuracy": "accuracy"})


@register_figure(
    "uncertainty-heatmaps",
    "epistemic, aleatoric and total uncertainty, and EU/TU, over the grid of a sweep",
    place=40,
)
def draw_uncertainty_heatmaps(store: SweepStore) -> DrawnFigure:
    """Uncertainty at the end, its parts and their share: a column per split."""
    title = "Uncertainty decomposition over the grid of the sweep"
    quantities = {
        "epistemic": "EU (nats)",
        "aleatoric": "AU (nats)",
        "total": "TU (nats)",
        SHARE: "EU/TU",
    }
    return _draw_maps(store, "uncertainty-heatmaps", title, quantities)


def _draw_maps(
    store: SweepStore, name: str, title: str, quantities: Mapping[str, str]
) -> DrawnFigure:
    every = _grids(store)
    grids = every[:MAX_SETTINGS]
    maps = {
        (grid.preset, quantity): _read_maps(
            store, grid, _METRICS.get(quantity, f"{quantity}_final")
        )
        for grid in grids
        for quantity in quantities
    }
    found = {split for by_split in maps.values() for split in by_split}
    splits = [split for split in in_order(found) if split != ID_TRAIN.name]
    if not splits:
        raise UserError(f"no run of the grid in {store.path} has been evaluated yet")
    panel_rows = [(grid, quantity) for quantity in quantities for grid in grids]
    rows: list[dict[str, Any]] = []
    with publication_style():
        map_height = max(1.0, 0.21 * max(len(grid.values[0]) for grid in grids))
        height = 0.7 + len(panel_rows) * (0.45 + map_height)
        figure = Figure(figsize=(TEXT_WIDTH, height), layout="constrained")
        panels = figure.subplots(len(panel_rows), len(splits), squeeze=False)
        for row, (grid, quantity) in zip(panels, panel_rows):
            norm = _norm(quantity, maps[grid.preset, quantity])
            for axes, split in zip(row, splits):
                cells = maps[grid.preset, quantity].get(split, {})
                _draw_map(axes, grid, cells, norm, quantity)
                rows += _table_rows(grid, cells, {"quantity": quantity, "split": split})
            row[0].set_ylabel(literal(f"{grid.preset}\n{grid.axis(0)[0]}"))
            bar = figure.colorbar(ScalarMappable(norm, _COLOURS), ax=row.tolist(), aspect=12)
            bar.set_label(quantities[quantity])
        _label_panels(panels, panel_rows, splits, quantities)
        notes = _notes(rows)
        if notes:
            handles = list(map(_handle, notes))
            figure.legend(handles=handles, loc="outside lower center", ncols=2)
    shown = "; ".join(f"{grid.preset}, posterior {grid.posterior}" for grid in grids)
    caption = (
        f"{title}: last answer at the last evaluation, {_pooled(grids, rows)}. Shown: {shown}. "
        + " ".join(_extremes(maps[grid.preset, q], grid, q) for grid, q in panel_rows)
        + (_OWN_COLOURS if len(grids) > 1 and set(quantities) - set(_SHARES) else "")
        + "".join(f" {_NOTES[note]}" for note in notes)
        + f" {splits_sentence(splits, store)}"
        + (f" Shown are {len(grids)} of {len(every)} presets." if len(every) > len(grids) else "")
    )
    return DrawnFigure(name, title, caption, figure, columns(rows))


def _pooled(grids: Sequence[Grid], rows: Sequence[Mapping[str, Any]]) -> str:
    """What a cell shows, and what its band in the data is over."""
    most = max(row["num_runs"] for row in rows)
    if most == 1:
        return "one run in each cell"
    seeds = {name for grid in grids for name in grid.varying_seeds}
    return (
        f"median over runs that differ in {seeds_text(seeds)}. The data beside the figure has "
        f"bands that hold 95 % of the runs{band_note(most)}"
    )


def _notes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The kinds of cells that need an explanation."""
    found = {"missing": any(not row["num_runs"] for row in rows)}
    found["unfinished"] = any(row["num_runs"] and row["num_unfinished"] for row in rows)
    return [note for note, is_there in found.items() if is_there]


def _handle(note: str) -> Patch:
    if note == "missing":
        return Patch(facecolor="white", edgecolor="0.6", hatch="//////", label=note)
    return Patch(facecolor="none", label=f"{_UNFINISHED} some runs unfinished")


def _grids(store: SweepStore) -> list[Grid]:
    grids, differences = [], {}
    for preset, configs in configs_by_preset(store).items():
        fields = distinguishing_fields(configs)
        description = store.runs[configs[0]["run_id"]].description()
        posteriors = shown_posteriors(description.posteriors)
        differences[preset] = ", ".join(fields) or "nothing"
        has_lists = any(isinstance(config[f], list) for config in configs for f in fields)
        if len(fields) != 2 or has_lists or not posteriors:
            continue
        fields = sorted(fields, key=lambda field: field == _FRACTION)
        down, across = fields
        unfinished: dict[tuple[Any, Any], int] = defaultdict(int)
        for config in configs:
            unfinished[config[down], config[across]] += config["state"] != "done"
        values = [sorted({config[field] for config in configs}, key=by_size) for field in fields]
        pairs, seeds = (values[0], values[1]), varying_seeds(configs)
        grids.append(Grid(preset, posteriors[0], fields, pairs, unfinished, seeds))
    if not grids:
        raise UserError(
            f"a heatmap needs runs of one preset that differ in exactly two fields, as in "
            f"`epigrok sweep paper`; the runs in {store.path} differ in: "
            + "; ".join(f"{preset}: {fields}" for preset, fields in differences.items())
        )
    return grids


def _read_maps(store: SweepStore, grid: Grid, metric: str) -> dict[str, dict[Any, Cell]]:
    """Split -> (down, across) -> cell."""
    by = ["preset", *grid.fields, "split"]
    found = store.median_and_band(metric, by, posterior=grid.posterior).fetchall()
    maps: dict[str, dict[Any, Cell]] = defaultdict(dict)
    for preset, down, across, split, *values in found:
        if preset == grid.preset:
            maps[split][down, across] = Cell(*values)
    return maps


def _norm(quantity: str, maps: Mapping[str, Mapping[Any, Cell]]) -> Normalize:
    """The colours of one preset: EU of two methods may differ by orders of magnitude."""
    if quantity in _SHARES:
        return Normalize(0.0, 1.0)
    values = [cell.median for cells in maps.values() for cell in cells.values()]
    return Normalize(0.0, max(values, default=0.0) or 1.0)


def _draw_map(
    axes: Axes, grid: Grid, cells: Mapping[Any, Cell], norm: Normalize, quantity: str
) -> None:
    downs, acrosses = grid.values
    values = np.array([[cells.get((d, a), _NO_RUN).median for a in acrosses] for d in downs])
    # Cells without a value show the hatching behind them.
    axes.patch.set(facecolor="white", edgecolor="0.6", hatch="//////", linewidth=0)
    axes.pcolormesh(
        np.ma.masked_invalid(values), norm=norm, cmap=_COLOURS, edgecolors="white", linewidth=0.4
    )
    for k, down in enumerate(downs):
        for m, across in enumerate(acrosses):
            if np.isnan(values[k, m]):
                continue
            mark = _UNFINISHED if grid.num_unfinished.get((down, across)) else ""
            axes.text(
                m + 0.5, k + 0.5, _number(values[k, m], quantity) + mark, ha="center", va="center",
                fontsize=5.5, color="white" if norm(values[k, m]) < 0.55 else "black",
            )  # fmt: skip
    axes.set_xticks(np.arange(len(acrosses)) + 0.5, grid.axis(1)[1])
    axes.set_yticks(np.arange(len(downs)) + 0.5, grid.axis(0)[1])
    axes.tick_params(length=0)
    axes.grid(visible=False)


def _number(value: float, quantity: str) -> str:
    """Two decimals, or an exponent for uncertainties that are orders of magnitude smaller."""
    if quantity == "accuracy" or value >= 0.01 or value == 0.0:
        return f"{value:.2f}"
    return f"{value:.0e}".replace("e-0", "e-")


def _label_panels(
    panels: NDArray[Any],
    panel_rows: Sequence[tuple[Grid, str]],
    splits: Sequence[str],
    quantities: Mapping[str, str],
) -> None:
    for (grid, quantity), row in zip(panel_rows, panels):
        for axes, split in zip(row, splits):
            of_quantity = f"{quantity}, " if len(quantities) > 1 else ""
            axes.set_title(f"{of_quantity}{split}, {grid.posterior}", fontsize=7)
            axes.set_xlabel(grid.axis(1)[0])


def _table_rows(
    grid: Grid, cells: Mapping[Any, Cell], keys: Mapping[str, str]
) -> list[dict[str, Any]]:
    down, across = grid.fields
    return [
        {
            "preset": grid.preset,
            "posterior": grid.posterior,
            **keys,
            down: d,
            across: a,
            **vars(cells.get((d, a), _NO_RUN)),
            "num_unfinished": grid.num_unfinished.get((d, a), 0),
        }
        for d in grid.values[0]
        for a in grid.values[1]
    ]


def _extremes(maps: Mapping[str, Mapping[Any, Cell]], grid: Grid, quantity: str) -> str:
    """Smallest and largest value of the hardest split."""
    if not maps:
        return f"{grid.preset}: nothing evaluated."
    split = in_order(maps)[-1]
    values = [cell.median for cell in maps[split].values()]
    number = len(grid.values[0]) * len(grid.values[1])
    return (
        f"{grid.preset}, {split}: {quantity} from {_number(min(values), quantity)} to "
        f"{_number(max(values), quantity)} ({len(values)} of {number} cells)."
    )
