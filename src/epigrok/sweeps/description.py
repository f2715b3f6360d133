"""A sweep: a small description of a list of runs.

The runs are every preset of `methods` in each of the `variants`, with every combination of the
values in `axes` and every seed. The hash of its whole configuration names a run's directory, so a
description can grow and still find the runs that are done. Names that users choose are labels,
never paths.
"""

import dataclasses
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from epigrok.config import RunConfig, flatten, from_json, preset, run_id, to_json
from epigrok.config.checks import require
from epigrok.config.overrides import with_fields
from epigrok.config.run import SEED_FIELDS
from epigrok.errors import UserError
from epigrok.files import make_writable_directory, one_at_a_time, read_json, write_json
from epigrok.records.description import DESCRIPTION as RUN
from epigrok.records.directory import CONFIG, SWEEP, RunDirectory

MOST_RUNS = 20_000


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Fields to set in some runs, chosen by the values of their fields."""

    where: Mapping[str, Any]
    """Field -> its value in these runs, or a list of values; `preset` and `variant` count too."""
    set: Mapping[str, Any]

    def holds(self, flat_config: Mapping[str, Any]) -> bool:
        """Whether the condition applies to a run."""
        return all(flat_config.get(name) in self.wanted(name) for name in self.where)

    def wanted(self, name: str) -> list[Any]:
        """The values of a field that the condition names; empty if it does not name the field."""
        values = self.where.get(name, [])
        return values if isinstance(values, list) else [values]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What varies and what stays the same; `runs_of` turns it into configurations."""

    name: str
    """A label."""
    methods: tuple[str, ...]
    """Presets; each runs over the whole grid."""
    variants: tuple[str, ...] = ("plain",)
    """Names of changes that need several fields, or different fields in different presets;
    conditions say which."""
    axes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Dotted field -> its values."""
    seeds: tuple[int, ...] = (0,)
    """Each value is the `run_seed` of a run and, without `task_seeds`, its `task_seed` too."""
    task_seeds: tuple[int, ...] = ()
    """Each value is a `task_seed`, combined with every seed: one world for all seeds, or several
    worlds with the same seeds in each."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Dotted field -> its value in every run."""
    conditions: tuple[Condition, ...] = ()
    """Changes to some of the runs; later ones win."""

    def __post_init__(self) -> None:
        require(bool(self.methods), "a sweep needs at least one preset in 'methods'")
        lists = {"methods": self.methods, "variants": self.variants, "seeds": self.seeds}
        lists |= {"task_seeds": self.task_seeds} if self.task_seeds else {}
        for name, values in {**lists, **self.axes}.items():
            require(len(values) > 0, f"{name!r} has no values")
            require(len(values) <= MOST_RUNS, f"{name!r} has {len(values):,} values, too many")
            # A value may be a list, which no set can hold.
            kept = {repr(value) if isinstance(value, list | dict) else value for value in values}
            require(len(kept) == len(values), f"{name!r} lists a value twice")
        for name in SEED_FIELDS:
            require(
                name not in self.axes and name not in self.overrides,
                f"{name!r} is set by 'seeds' and 'task_seeds'; it can be neither an axis nor an "
                "override",
            )
        for condition in self.conditions:
            for variant in condition.wanted("variant"):
                require(
                    variant in self.variants,
                    f"a condition asks for variant {variant!r}; there are: "
                    + ", ".join(self.variants),
                )

    @property
    def seed_pairs(self) -> list[dict[str, int]]:
        """`run_seed` and `task_seed` of the runs of one setting."""
        task_seeds = [self.task_seeds or (seed,) for seed in self.seeds]
        return [
            {"run_seed": seed, "task_seed": task_seed}
            for seed, of_seed in zip(self.seeds, task_seeds)
            for task_seed in of_seed
        ]


def runs_of(sweep: Sweep) -> dict[str, RunConfig]:
    """Run id -> configuration, in the order of the description."""
    fields = {name for method in sweep.methods for name in flatten(to_json(preset(method)))}
    asked = {name for condition in sweep.conditions for name in condition.where}
    unknown = ", ".join(sorted(asked - fields - {"variant"}))
    require(not unknown, f"sweep {sweep.name!r}: a condition names unknown fields: {unknown}")
    lists = (sweep.methods, sweep.variants, sweep.seed_pairs, *sweep.axes.values())
    number = prod(map(len, lists))
    require(number <= MOST_RUNS, f"sweep {sweep.name!r} has {number:,} runs, over {MOST_RUNS:,}")
    runs: dict[str, RunConfig] = {}
    origins: dict[str, dict[str, Any]] = {}
    idle, unused = list(sweep.conditions), set(sweep.variants)
    for method, variant, values, seeds in product(
        sweep.methods, sweep.variants, product(*sweep.axes.values()), sweep.seed_pairs
    ):
        point = dict(zip(sweep.axes, values))
        base = preset(method)
        changes = {**sweep.overrides, **point, **seeds}
        for condition in sweep.conditions:
            if condition.holds({**flatten(to_json(base)), **changes, "variant": variant}):
                changes |= condition.set
                idle = [other for other in idle if other is not condition]
        config = _config_of(sweep, base, changes, point)
        name, where = run_id(config), {"preset": method, **point, **seeds}
        # A variant may leave some runs unchanged; they count once.
        if name not in runs:
            runs[name] = config
            origins[name] = where
            unused.discard(variant)
        elif origins[name] != where:
            one, other = (_assignments(origin) for origin in (origins[name], where))
            raise UserError(f"sweep {sweep.name!r}: {one} and {other} are the same run")
    # Most likely a typing error: the runs that it means would go without its changes.
    if idle:
        asked_for = ", ".join(f"{name} = {value}" for name, value in idle[0].where.items())
        raise UserError(f"sweep {sweep.name!r}: a condition applies to no run: {asked_for}")
    if unused:
        names = ", ".join(sorted(unused))
        raise UserError(
            f"sweep {sweep.name!r}: variant {names} changes no run; add a condition for it"
        )
    return runs


def _assignments(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _config_of(
    sweep: Sweep, base: RunConfig, changes: Mapping[str, Any], point: Mapping[str, Any]
) -> RunConfig:
    try:
        return with_fields(base, changes)
    except UserError as error:
        values = _assignments(point)
        where = f"at {values} of preset {base.preset}" if values else f"preset {base.preset}"
        raise UserError(f"sweep {sweep.name!r}, {where}: {error}") from error


def sweep_from_json(values: Any) -> Sweep:
    """Read a sweep from the values of a file; the error for a mistake is one line."""
    require(isinstance(values, dict), "a sweep must be a JSON object with 'methods' and 'axes'")
    known = {item.name for item in dataclasses.fields(Sweep)}
    unknown = sorted(values.keys() - known)
    require(
        not unknown, f"unknown entries {', '.join(unknown)}; there are: {', '.join(sorted(known))}"
    )
    require("methods" in values, "'methods' is missing: the list of presets to run")
    require(isinstance(values.get("name", ""), str), "'name' must be a string")
    for name in ("methods", "variants", "seeds", "task_seeds", "conditions"):
        require(isinstance(values.get(name, []), list), f"{name!r} must be a list")
    for name in ("axes", "overrides"):
        require(isinstance(values.get(name, {}), dict), f"{name!r} must be an object")
    for name, axis in values.get("axes", {}).items():
        require(isinstance(axis, list), f"axis {name!r} must be a list of values")
    seeds = {name: tuple(values[name]) for name in ("seeds", "task_seeds") if name in values}
    for name, numbers in seeds.items():
        require(all(type(n) is int for n in numbers), f"{name!r} must be whole numbers")
    require(all(isinstance(m, str) for m in values["methods"]), "'methods' must be preset names")
    variants = values.get("variants", Sweep.variants)
    require(all(isinstance(name, str) for name in variants), "'variants' must be names")
    return Sweep(
        name=values.get("name", "sweep"),
        methods=tuple(values["methods"]),
        variants=tuple(variants),
        axes={name: tuple(axis) for name, axis in values.get("axes", {}).items()},
        **seeds,
        overrides=values.get("overrides", {}),
        conditions=tuple(map(_condition_from_json, values.get("conditions", []))),
    )


def _condition_from_json(values: Any) -> Condition:
    require(
        isinstance(values, dict)
        and values.keys() == {"where", "set"}
        and all(isinstance(part, dict) for part in values.values()),
        "a condition must be an object with two objects, 'where' and 'set'",
    )
    return Condition(**values)


def sweep_to_json(sweep: Sweep) -> dict[str, Any]:
    """The complete description as plain JSON values."""
    values: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(sweep)))
    return values


def prepare(directory: Path, sweep: Sweep) -> dict[str, RunDirectory]:
    """Make the missing run directories and record the description; existing runs stay."""
    # Imported here, because reading a description needs no torch.
    from epigrok.runs.describing import write_identity

    runs = runs_of(sweep)
    make_writable_directory(directory)
    if (directory / CONFIG).exists():
        raise UserError(f"{directory} holds a single run; choose another directory")
    _note_description(directory / SWEEP, sweep, set(runs))
    for name, config in runs.items():
        run = RunDirectory(directory / name)
        if (run.path / CONFIG).exists():
            continue
        run.path.mkdir(exist_ok=True)
        # Written outside the run directory, which another driver's worker may be cleaning.
        with tempfile.TemporaryDirectory(dir=directory, prefix=f".{name}.") as made:
            write_identity(Path(made), config)
            for file in (RUN, CONFIG):
                (Path(made) / file).replace(run.path / file)
    return {name: RunDirectory(directory / name) for name in runs}


def recorded_sweeps(directory: Path) -> list[Sweep]:
    """The descriptions whose runs a directory holds, oldest first."""
    path = directory / SWEEP
    if not path.exists():
        return []
    try:
        return [sweep_from_json(values) for values in read_json(path)["sweeps"]]
    except (ValueError, TypeError, KeyError, UserError) as error:
        raise UserError(f"{path} is not what `epigrok sweep` writes there: {error}") from error


def problem_with(run: RunDirectory) -> str | None:
    """Why a directory does not hold the run it is named after; None if it does."""
    try:
        found = run_id(from_json(run.config_json()))
    except UserError as error:
        return str(error)
    if found == run.path.name:
        return None
    return f"its config.json was changed: it now describes run {found}"


def _note_description(path: Path, sweep: Sweep, runs: set[str]) -> None:
    """Record a description; it replaces those whose runs it contains."""
    with one_at_a_time(path.parent):
        others = [known for known in recorded_sweeps(path.parent) if known != sweep]
        kept = [known for known in others if not _is_contained(known, runs)]
        write_json(path, {"sweeps": [sweep_to_json(known) for known in [*kept, sweep]]})


def _is_contained(sweep: Sweep, runs: set[str]) -> bool:
    try:
        return set(runs_of(sweep)) <= runs
    except UserError:
        return False  # recorded when presets or fields were different
