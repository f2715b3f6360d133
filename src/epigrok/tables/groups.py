"""Settings: runs of one preset that differ in nothing but their seeds.

A setting is a preset and the values of the fields that differ among the preset's runs. Figures,
events and `epigrok separation` all group runs with this module.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from epigrok.config.posterior import ORACLES, POINT, parse_posterior
from epigrok.config.run import SEED_FIELDS
from epigrok.config.splits import Split, in_order
from epigrok.errors import UserError
from epigrok.evaluation.schema import ACCURACY_FINAL
from epigrok.records.description import TrackedPosterior
from epigrok.tables.fields import by_size, distinguishing_fields, field_label, value_label
from epigrok.tables.store import SweepStore
from epigrok.wording import runs_text


@dataclass(frozen=True)
class Setting:
    """Runs of one preset that differ in nothing but their seeds."""

    preset: str
    fields: Mapping[str, Any]
    """Fields that distinguish it from other settings of its preset."""
    splits: tuple[str, ...]
    """From training to hardest."""
    posteriors: tuple[str, ...]
    """Posteriors with epistemic uncertainty: the inferred one, then the control for it."""
    num_examples: int
    """Context length in training, the query included; 1 if there is no context."""
    num_runs: int
    num_unfinished: int
    accuracy: float
    """On the hardest split, at the last evaluation: median over runs."""
    store: SweepStore
    """The tables of its runs alone."""
    varying_seeds: tuple[str, ...] = ()
    """The seeds in which its runs differ: `run_seed`, `task_seed` or both."""

    @property
    def name(self) -> str:
        """Preset and fields, on one line."""
        return ", ".join([self.preset, *self.values])

    @property
    def values(self) -> list[str]:
        """Each field with its value."""
        return [f"{field_label(n)} = {value_label(n, v)}" for n, v in self.fields.items()]

    @property
    def runs(self) -> str:
        """The number of runs, and of unfinished ones."""
        number = runs_text(self.num_runs)
        return f"{number}, {self.num_unfinished} unfinished" if self.num_unfinished else number

    @property
    def hardest_split(self) -> str:
        """Unseen tasks if there are any, else unseen inputs."""
        return self.splits[-1]

    def keys(self) -> dict[str, Any]:
        """Columns that name the setting in a table."""
        return {"preset": self.preset, **self.fields}


def configs_by_preset(store: SweepStore) -> dict[str, list[dict[str, Any]]]:
    """Preset -> id, state and configuration, under dotted names, of its readable runs."""
    relation = store.sql("select * from runs where state <> 'unreadable' order by run_id")
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in relation.fetchall():
        config = dict(zip(relation.columns, row))
        found[str(config.get("preset"))].append(config)
    return dict(sorted(found.items()))


def shown_posteriors(tracked: Iterable[TrackedPosterior]) -> tuple[str, ...]:
    """The first inferred posterior that a run tracks, and the strongest control for it."""
    tracked = list(tracked)
    inferred = [posterior.name for posterior in tracked if posterior.role == "inferred"]
    # The posterior that the optimiser carries comes before those fitted afterwards.
    inferred.sort(key=lambda name: parse_posterior(name).kind != "ivon")
    controls = [posterior.name for posterior in tracked if posterior.role == "control"]
    controls.sort(key=lambda name: -(parse_posterior(name).number or 0.0))
    return (*inferred[:1], *controls[:1])


def settings(store: SweepStore) -> list[Setting]:
    """Every setting whose runs have been evaluated, in order of presets and values."""
    scores = _accuracy_by_run(store)
    found = []
    for (preset, fields), configs in _groups(store).items():
        run_ids = [config["run_id"] for config in configs if config["run_id"] in scores]
        if not run_ids:
            continue
        splits = tuple(in_order(split for run_id in run_ids for split in scores[run_id]))
        hardest = [scores[run_id][splits[-1]] for run_id in run_ids if splits[-1] in scores[run_id]]
        description = store.runs[run_ids[0]].description()
        found.append(
            Setting(
                preset=preset,
                fields=dict(fields),
                splits=splits,
                posteriors=shown_posteriors(description.posteriors),
                num_examples=description.num_examples,
                num_runs=len(run_ids),
                num_unfinished=sum(
                    config["state"] != "done" for config in configs if config["run_id"] in run_ids
                ),
                accuracy=median(hardest),
                store=store.of_runs(run_ids),
                varying_seeds=varying_seeds([c for c in configs if c["run_id"] in run_ids]),
            )
        )
    return found


def varying_seeds(configs: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The seeds in which these runs differ."""
    configs = list(configs)
    return tuple(n for n in SEED_FIELDS if len({config.get(n) for config in configs}) > 1)


def require_evaluated(store: SweepStore) -> list[Setting]:
    """Every evaluated setting; there must be at least one."""
    found = settings(store)
    if not found:
        raise UserError(f"no run in {store.path} has been evaluated yet")
    return found


def known_splits(store: SweepStore) -> dict[str, Split]:
    """The splits of all readable runs by name, as the runs describe them."""
    readable = [c["run_id"] for configs in configs_by_preset(store).values() for c in configs]
    return {
        split.name: split
        for run_id in readable
        for split in store.runs[run_id].description().splits
    }


def num_settings(store: SweepStore) -> int:
    """How many settings there are, evaluated or not."""
    return len(_groups(store))


def _accuracy_by_run(store: SweepStore) -> dict[str, dict[str, float]]:
    """Run id -> split -> accuracy of `point`, or else of the best posterior, at the end."""
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    query = f"select run_id, split, posterior, {ACCURACY_FINAL} from latest"
    query += f" where {ACCURACY_FINAL} is not null"
    rows = [row for row in store.sql(query).fetchall() if row[2] not in ORACLES]
    has_point = {(run_id, split) for run_id, split, posterior, _ in rows if posterior == POINT}
    for run_id, split, posterior, value in rows:
        if posterior == POINT or (run_id, split) not in has_point:
            scores[run_id][split] = max(value, scores[run_id].get(split, 0.0))
    return scores


def _groups(store: SweepStore) -> dict[tuple[str, tuple[tuple[str, Any], ...]], list[Any]]:
    """Runs by preset and by the fields that distinguish its settings."""
    groups: dict[Any, list[Any]] = defaultdict(list)
    for preset, configs in configs_by_preset(store).items():
        names = distinguishing_fields(configs, with_seeds=store.seeds_apart)
        for config in configs:
            values = [tuple(v) if isinstance(v := config[n], list) else v for n in names]
            groups[preset, tuple(zip(names, values))].append(config)
    order = sorted(groups, key=lambda key: (key[0], [by_size(value) for _, value in key[1]]))
    return {key: groups[key] for key in order}
