"""Fields of configurations: which ones distinguish runs, and how people read them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from epigrok.config.run import SEED_FIELDS
from epigrok.config.task import TASKS_PER_BASE_TASK

Config = Mapping[str, Any]
"""A configuration under dotted names, or a row of `runs`."""
_OWN_COLUMNS = ("run_id", "state")
_FIELD_LABELS = {
    "task.num_base_tasks": "training tasks T",
    "task.num_train_tasks": "training tasks T",
    "task.train_fraction": "training fraction",
    "optim.lr": "learning rate",
}


def varying_fields(configs: Sequence[Config]) -> list[str]:
    """Every field that varies within a preset, and `preset` first if there are several.

    Where both seeds always agree, only `run_seed` is listed.
    """
    names = dict.fromkeys(n for config in configs for n in config if n not in _OWN_COLUMNS)
    if all(config.get("task_seed") == config.get("run_seed") for config in configs):
        names.pop("task_seed", None)
    by_preset = defaultdict(list)
    for config in configs:
        by_preset[repr(config.get("preset"))].append(config)
    names.pop("preset", None)
    varying = [n for n in names if any(_num_values(group, [n]) > 1 for group in by_preset.values())]
    return ["preset", *varying] if len(by_preset) > 1 else varying


def distinguishing_fields(configs: Sequence[Config], with_seeds: bool = False) -> list[str]:
    """Varying fields that distinguish the runs; a field that earlier ones imply is left out."""
    chosen: list[str] = []
    for name in varying_fields(configs):
        is_left_out = name in SEED_FIELDS and not with_seeds
        if not is_left_out and _num_values(configs, [*chosen, name]) > _num_values(configs, chosen):
            chosen.append(name)
    return chosen


def _num_values(configs: Sequence[Config], names: Sequence[str]) -> int:
    """How many groups the runs form by the values of these fields."""
    return len({tuple(repr(config.get(name)) for name in names) for config in configs})


def field_label(name: str) -> str:
    """A field of the configuration in words."""
    return _FIELD_LABELS.get(name, name.rpartition(".")[2].replace("_", " "))


def value_label(name: str, value: Any) -> str:
    """The value of a field in words; base tasks are counted as training tasks."""
    if name == "task.num_base_tasks" and isinstance(value, int):
        value *= TASKS_PER_BASE_TASK
    if not isinstance(value, float):
        return str(value)
    # Tables group runs by this text, so values that differ must not look the same.
    short = f"{value:g}"
    return short if float(short) == value else f"{value:.9g}"


def by_size(value: Any) -> tuple[bool, float, str]:
    """Sort key for the values of a field: numbers by size, then everything else by name."""
    is_number = isinstance(value, int | float)
    return not is_number, value if is_number else 0.0, str(value)
