"""The table of `epigrok status` on terminals of several widths."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from epigrok.commands.status import status_view
from epigrok.records.status import read_statuses
from epigrok.sweeps.description import Sweep, prepare

GRID = Sweep(
    name="grid",
    methods=("icl-small", "icl-small-ivon"),
    axes={"task.num_base_tasks": (16, 8), "task.train_fraction": (0.6, 0.4)},
    seeds=(1, 0),
)


def shown(directory: Path, width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO())
    console.print(status_view(read_statuses(directory), None, is_plain=False, width=width))
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def evaluated_grid(directory: Path) -> list[str]:
    """Run ids in the order of presets, fields and seeds."""
    runs = prepare(directory, GRID).values()
    for run in runs:
        splits = ("id_val", "ood_val")
        scores = {"accuracy_final": dict.fromkeys(splits, 0.5), "epistemic_final": {}}
        scores["epistemic_final"] = dict.fromkeys(splits, 0.00077)
        run.write_status(state="stopped", step=1234, updated=1.0, **scores)

    def place(run_id: str) -> tuple[object, ...]:
        config = next(run.config() for run in runs if run.path.name == run_id)
        task = config.task
        return config.preset, task.num_base_tasks, task.train_fraction, config.run_seed

    return sorted((run.path.name for run in runs), key=place)


@pytest.mark.parametrize("width", [80, 120])
def test_no_cell_is_cut_and_fields_come_before_times(width: int, tmp_path: Path) -> None:
    evaluated_grid(tmp_path)
    lines = shown(tmp_path, width)
    assert max(map(len, lines)) <= width
    assert not any("…" in line for line in lines)
    heads = next(line for line in lines if line.startswith("run")).split()
    assert heads[:6] == ["run", "state", "preset", "n_task", "fraction", "seed"]
    assert ("EU" in heads) == ("ood_val" in heads) == (width == 120)
    told = [line for line in lines if line.startswith("no room for: age, acc id_val, EU")]
    assert len(told) == (width == 80)


def test_rows_are_in_the_order_of_their_values(tmp_path: Path) -> None:
    expected = evaluated_grid(tmp_path)
    rows = [line.split()[0] for line in shown(tmp_path, 120) if " stopped  icl" in line]
    assert rows == expected


def test_small_uncertainties_and_long_numbers_are_rounded_to_their_digits(tmp_path: Path) -> None:
    axes = {"optim.ess": (1442307.6923076923, 1000000.0)}
    runs = prepare(tmp_path, Sweep(name="s", methods=("icl-small-ivon",), axes=axes)).values()
    for run in runs:
        run.write_status(state="stopped", step=1, epistemic_final={"ood_val": 0.00077})
    text = "\n".join(shown(tmp_path, 80))
    assert " 1.44231e+06 " in text
    assert " 0.00077 " in text
    assert "(preset icl-small-ivon)" in text.splitlines()[0]


def test_a_head_from_a_file_is_no_markup(tmp_path: Path) -> None:
    runs = prepare(tmp_path, Sweep(name="s", methods=("classic",), seeds=(0, 1))).values()
    for number, run in enumerate(runs):
        file = run.path / "config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "[/x]": number}))
    heads = next(line for line in shown(tmp_path, 80) if line.startswith("run"))
    assert "[/x]" in heads


def test_a_long_name_leaves_room_for_the_rest(tmp_path: Path) -> None:
    (run,) = prepare(tmp_path, Sweep(name="s", methods=("classic",))).values()
    run.path.rename(tmp_path / ("long" * 30))
    heads = next(line for line in shown(tmp_path, 80) if line.startswith("run"))
    assert heads.split() == ["run", "state", "of", "3000", "steps/s", "left", "age"]
