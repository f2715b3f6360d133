"""`epigrok settings DIR`: the tables of the paper's appendix, as runs have them, and their cost."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from epigrok.commands.arguments import parse
from epigrok.config.task import TASKS_PER_BASE_TASK
from epigrok.errors import UserError
from epigrok.tables import SweepStore, open_sweep
from epigrok.tables.fields import value_label
from epigrok.tables.groups import configs_by_preset
from epigrok.wording import duration_text

Config = Mapping[str, Any]
_WIDTH = 160


def _tasks(config: Config) -> int | None:
    """Training tasks; base tasks count with the three that complete each."""
    base = config.get("task.num_base_tasks")
    return config.get("task.num_train_tasks") if base is None else TASKS_PER_BASE_TASK * int(base)


_TABLES: dict[str, dict[str, str | Callable[[Config], Any]]] = {
    "Tasks and sequences": {
        "task": "task.kind",
        "modulus, vocabulary": "task.modulus",
        "training tasks": _tasks,
        "task construction": "task.construction",
        "unseen tasks, at most": "task.num_ood_tasks",
        "training fraction": "task.train_fraction",
        "context length (examples)": "task.num_examples",
        "all tasks share inputs": "task.shares_inputs",
        "a row may repeat inputs": "task.repeats_inputs",
        "batch size": "batch_size",
        "run seeds": "run_seed",
        "task seeds": "task_seed",
    },
    "Network": {
        "network": "model.kind",
        "layers": "model.num_layers",
        "attention heads": "model.num_heads",
        "width": "model.width",
        "feed-forward width": "model.feedforward_width",
        "initial std of matrices": "model.init_std",
        "initial std of embeddings": "model.embedding_init_std",
        "precision": "precision",
    },
    "Optimisation": {
        "optimiser": "optim.kind",
        "peak learning rate": "optim.lr",
        "steps": "num_steps",
        "warm-up steps": "schedule.warmup_steps",
        "initial learning-rate scale": "schedule.initial_scale",
        "final learning-rate scale": "schedule.final_scale",
        "weight decay": "optim.weight_decay",
        "momentum": "optim.momentum",
        "learning rate of embeddings and gains": "optim.adamw_lr",
        "weight decay of embeddings": "optim.adamw_weight_decay",
        "betas": "optim.betas",
        "Hessian init": "optim.hess_init",
        "effective sample size": "optim.ess",
        "clip radius": "optim.clip_radius",
        "largest gradient norm": "optim.clip_norm",
        "weight samples per step": "optim.num_train_samples",
    },
    "Posteriors": {
        "posteriors": "evaluation.posteriors",
        "weight samples, curve": "evaluation.num_samples",
        "weight samples, end": "evaluation.num_final_samples",
        "sequences per split": "evaluation.num_sequences",
        "of them for sampled posteriors": "evaluation.num_sampled_sequences",
        "steps between evaluations": "evaluation.every",
        "products of evaluation": "evaluation.matmul_precision",
    },
}


@dataclass(frozen=True, kw_only=True)
class SettingsArguments:
    """Print the settings of the runs as they were run, and what they cost.

    The four tables follow the paper's appendix: tasks, network, optimisation, posteriors. A column
    is a preset; where its runs differ, all values are listed. The fifth table is the cost.
    """

    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """Directory of a sweep or a run; `zoo:NAME` is a run that comes with the package."""
    where: tuple[str, ...] = ()
    """Only runs whose fields have these values, as in task.num_base_tasks=64 run_seed=0,1."""


def main(arguments: Sequence[str]) -> int:
    """Print the five tables."""
    parsed = parse(SettingsArguments, "settings", arguments)
    store = open_sweep(parsed.directory, where=parsed.where)
    presets = configs_by_preset(store)
    if not presets:
        raise UserError(f"no run in {parsed.directory} has a configuration that can be read")
    console = Console(width=_WIDTH, no_color=True, markup=False, highlight=False)
    for title, fields in _TABLES.items():
        rows = {
            label: [_values(configs, field) for configs in presets.values()]
            for label, field in fields.items()
        }
        console.print(_table(title, list(presets), rows))
    console.print(_table("Cost", list(presets), _costs(store, presets)))
    return 0


def _table(title: str, presets: Sequence[str], rows: Mapping[str, Sequence[str]]) -> Table:
    table = Table(box=MARKDOWN)
    table.add_column(title)
    for preset in presets:
        table.add_column(preset)
    for label, values in rows.items():
        # Leave out fields that no run has, such as IVON's Hessian in runs of AdamW.
        if any(values):
            table.add_row(label, *values)
    return table


def _values(configs: Sequence[Config], field: str | Callable[[Config], Any]) -> str:
    """All values of a field in the runs of a preset; empty if no run has the field."""
    read = (lambda c: c.get(field)) if isinstance(field, str) else field
    name = field if isinstance(field, str) else ""
    found = {repr(value): value for config in configs if (value := read(config)) is not None}
    ordered = sorted(found.values(), key=lambda value: (str(type(value)), value))
    return ", ".join(_text(name, value) for value in ordered)


def _text(name: str, value: Any) -> str:
    if isinstance(value, list):
        return f"({', '.join(_text(name, item) for item in value)})"
    return ("yes" if value else "no") if isinstance(value, bool) else value_label(name, value)


def _costs(
    store: SweepStore, presets: Mapping[str, Sequence[Config]]
) -> dict[str, tuple[str, ...]]:
    costs = [_cost(store.of_runs([c["run_id"] for c in configs])) for configs in presets.values()]
    return {label: tuple(cost[label] for cost in costs) for label in costs[0]}


def _cost(store: SweepStore) -> dict[str, str]:
    query = """select count(*), sum(steps), sum(training), sum(evaluating) from
               (select max(step) as steps, sum(seconds_training) as training,
                       sum(seconds_evaluating) as evaluating from timings group by run_id)"""
    ((number, steps, training, evaluating),) = store.sql(query).fetchall()
    devices = {
        str(process.get("device", "unknown"))
        for run in store.runs.values()
        for process in run.provenance().get("processes", [])
    }
    num_done = sum(run.is_done for run in store.runs.values())
    return {
        "runs, of them finished": f"{len(store.runs)}, {num_done}",
        "runs with timings": str(number),
        "steps": f"{steps or 0:,}",
        "time training, summed over runs": duration_text(training or 0.0),
        "time evaluating, summed over runs": duration_text(evaluating or 0.0),
        "devices": ", ".join(sorted(devices)),
    }
