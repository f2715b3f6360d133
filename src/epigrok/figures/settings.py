"""Which runs make one curve: those of one preset that differ in nothing but their seeds.

Where a store keeps seeds apart, every run makes its own.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from epigrok.config import parse_posterior
from epigrok.config.task import TASKS_PER_BASE_TASK
from epigrok.errors import UserError
from epigrok.experiments.status import varying_fields
from epigrok.experiments.store import SweepStore
from epigrok.experiments.sweep import SEED_FIELDS
from epigrok.figures.style import literal

MAX_SETTINGS = 4
"""Columns of panels that a page has room for."""
SPLITS = ("id_train", "id_val", "ood_train", "ood_val")
"""From what was trained on to what is hardest."""
_INFERRED = ("ivon", "laplace", "laplace-exact")
_CONTROLS = ("weight-noise", "ivon-isotropic")
_FIELD_LABELS = {
    "task.num_base_tasks": "training tasks T",
    "task.num_train_tasks": "training tasks T",
    "task.train_fraction": "training fraction",
    "optim.lr": "learning rate",
}


@dataclass(frozen=True)
class Setting:
    """Runs that are repetitions of each other."""

    preset: str
    fields: Mapping[str, Any]
    """What tells it from other settings of its preset."""
    splits: tuple[str, ...]
    posteriors: tuple[str, ...]
    """Those with epistemic uncertainty: the inferred one first, then the control for it."""
    num_examples: int
    """Longest context, the query included; 1 where there is none."""
    num_runs: int
    num_unfinished: int
    accuracy: float
    """On the hardest split, at the last evaluation: median over runs."""
    store: SweepStore
    """The tables of its runs alone."""

    @property
    def label(self) -> str:
        """Its name, and how many runs are behind it, on a line each."""
        return literal("\n".join([self.preset, *self._values(), self.runs]))

    @property
    def name(self) -> str:
        """What a caption calls it."""
        return ", ".join([self.preset, *self._values()])

    @property
    def runs(self) -> str:
        """How many runs there are, and how many of them go on or have stopped."""
        number = f"{self.num_runs} run{'s' if self.num_runs > 1 else ''}"
        return f"{number}, {self.num_unfinished} unfinished" if self.num_unfinished else number

    @property
    def hardest_split(self) -> str:
        """Unseen tasks where there are any, else unseen inputs."""
        return self.splits[-1]

    def _values(self) -> list[str]:
        return [f"{field_label(n)} = {value_label(n, v)}" for n, v in self.fields.items()]

    def keys(self) -> dict[str, Any]:
        """Columns that name the setting in a figure's table."""
        return {"preset": self.preset, **self.fields}


def field_label(name: str) -> str:
    """A field of the configuration in words."""
    return _FIELD_LABELS.get(name, name.rpartition(".")[2].replace("_", " "))


def value_label(name: str, value: Any) -> str:
    """The value of a field under its label: training tasks are counted, not their bases."""
    if name == "task.num_base_tasks":
        value *= TASKS_PER_BASE_TASK
    return f"{value:g}" if isinstance(value, float) else str(value)


def by_size(value: Any) -> tuple[bool, float, str]:
    """A key to sort values of a field with: numbers by size, then everything else by name."""
    is_number = isinstance(value, int | float)
    return not is_number, value if is_number else 0.0, str(value)


def configs_by_preset(store: SweepStore) -> dict[str, list[dict[str, Any]]]:
    """Name, state and configuration, under dotted names, of the runs of each preset."""
    relation = store.sql("select * from runs order by run_id")
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in relation.fetchall():
        config = dict(zip(relation.columns, row))
        if config.get("preset"):  # a damaged configuration has none
            found[config["preset"]].append(config)
    return dict(sorted(found.items()))


def distinguishing_fields(
    configs: Sequence[Mapping[str, Any]], with_seeds: bool = False
) -> list[str]:
    """Fields, seeds among them or not, that tell these runs apart; none that others imply."""
    known = [
        {n: v for n, v in config.items() if n not in ("run_id", "state")} for config in configs
    ]
    chosen: list[str] = []
    num_groups = 1
    for name in varying_fields(known):
        if name in SEED_FIELDS and not with_seeds:
            continue
        groups = {tuple(repr(config[n]) for n in [*chosen, name]) for config in known}
        if len(groups) > num_groups:
            chosen.append(name)
            num_groups = len(groups)
    return chosen


def shown_settings(store: SweepStore) -> list[Setting]:
    """The settings that figures of one column per setting show.

    All of them where there are at most `MAX_SETTINGS`; else, of each preset the one that is most
    accurate on its hardest split, and of those the first.
    """
    settings = _settings(store)
    if not settings:
        raise UserError(f"no run in {store.path} has been evaluated yet")
    if len(settings) > MAX_SETTINGS:
        best: dict[str, Setting] = {}
        for setting in settings:
            if setting.accuracy > best.setdefault(setting.preset, setting).accuracy:
                best[setting.preset] = setting
        settings = list(best.values())
    return settings[:MAX_SETTINGS]


def pooling_sentence(shown: Iterable[Setting]) -> str:
    """How runs were put together, if they were."""
    pools = any(setting.num_runs > 1 for setting in shown)
    return " Medians over runs, bands hold 95 % of them." if pools else ""


def choice_note(store: SweepStore, shown: Sequence[Setting]) -> str:
    """A sentence on what is left out, if anything is."""
    number = len(_groups(store))
    if number <= MAX_SETTINGS:
        return ""
    return (
        f" Shown are {len(shown)} of {number} settings: of each preset, at most {MAX_SETTINGS}, "
        "the one that is most accurate on its hardest split."
    )


def shown_posteriors(names: Iterable[str]) -> tuple[str, ...]:
    """The inferred posterior that a run tracks first, and the strongest control for it."""
    parsed = [parse_posterior(name) for name in names]

    def first(kinds: Sequence[str]) -> list[str]:
        found = [p for kind in kinds for p in parsed if p.kind == kind]
        strongest = max((p.value for p in found if isinstance(p.value, float)), default=None)
        if found and found[0].kind == "weight-noise":
            found = [p for p in found if p.value == strongest]
        return [p.text for p in found[:1]]

    return (*first(_INFERRED), *first(_CONTROLS))


def _settings(store: SweepStore) -> list[Setting]:
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    if "accuracy_final" not in store.columns("metrics"):
        return []  # nobody has written a row
    found = store.median_and_band("accuracy_final", by=["run_id"])
    for run_id, split, _, value, *_ in found.fetchall():
        scores[run_id][split] = max(value, scores[run_id].get(split, 0.0))
    settings = []
    for (preset, fields), configs in _groups(store).items():
        evaluated = [config for config in configs if config["run_id"] in scores]
        if not evaluated:
            continue
        run_ids = [config["run_id"] for config in evaluated]
        splits = tuple(s for s in SPLITS if any(s in scores[run_id] for run_id in run_ids))
        hardest = [scores[run_id][splits[-1]] for run_id in run_ids if splits[-1] in scores[run_id]]
        settings.append(
            Setting(
                preset=preset,
                fields=dict(fields),
                splits=splits,
                posteriors=shown_posteriors(evaluated[0]["evaluation.posteriors"]),
                num_examples=evaluated[0].get("task.num_examples") or 1,
                num_runs=len(evaluated),
                num_unfinished=sum(config["state"] != "done" for config in evaluated),
                accuracy=median(hardest),
                store=store.of_runs(run_ids),
            )
        )
    return settings


def _groups(store: SweepStore) -> dict[tuple[str, tuple[tuple[str, Any], ...]], list[Any]]:
    """Runs by preset and by the fields that tell settings of the preset apart."""
    groups: dict[Any, list[Any]] = defaultdict(list)
    for preset, configs in configs_by_preset(store).items():
        names = distinguishing_fields(configs, store.seeds_apart)
        for config in configs:
            values = [tuple(v) if isinstance(v := config[n], list) else v for n in names]
            groups[preset, tuple(zip(names, values))].append(config)
    return {
        (preset, fields): groups[preset, fields]
        for preset, fields in sorted(
            groups, key=lambda key: (key[0], [by_size(value) for _, value in key[1]])
        )
    }
