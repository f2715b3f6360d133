"""Curves of a setting against its context: which table they come from, and of which runs.

All curves of a setting come from one table. That is the series that `epigrok evaluate` and the end
of training write or, for context lengths, what was tracked while training.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epigrok.config.posterior import ORACLES
from epigrok.figures.curves import Curves, curves_along
from epigrok.tables.groups import Setting, configs_by_preset, varying_seeds
from epigrok.tables.sql_text import quoted_text
from epigrok.wording import runs_text, share_text

METRICS = ("accuracy", "epistemic", "aleatoric")
_TRACKED = {"context_length": ("latest_positions", "exact_positions")}
"""Axis -> the tables that training fills: models, and exact predictors."""


@dataclass(frozen=True)
class ContextCurves:
    """What a figure draws of one setting."""

    setting: Setting
    """With the runs that are drawn, and the one posterior that is."""
    curves: Mapping[str, Curves]
    """Metric -> its curves."""
    note: str
    """Sentences on what is not drawn; empty if everything is."""


@dataclass(frozen=True)
class _Source:
    """The runs that have one posterior on the hardest split in one table."""

    tables: tuple[str, ...]
    posterior: str
    members: str
    """Of an ensemble; empty for other posteriors."""
    run_ids: frozenset[str]
    step: int | None = None
    """Of a series; tracked curves end at each run's own last step."""


def context_curves(setting: Setting, axis: str) -> ContextCurves | None:
    """The curves of a setting along an axis; None if its runs have none."""
    series, tracked = list(_series(setting, axis)), list(_tracked(setting, axis))
    present = {source.posterior for source in (*series, *tracked)}
    others = sorted(name for name in present if not name.startswith(ORACLES))
    name = next((name for name in (*setting.posteriors, *others) if name in present), None)
    if name is None or name.startswith(ORACLES):
        return None
    found = [source for source in (*series, *tracked) if source.posterior == name]
    # Of equally many runs the series, which comes first: it has more samples.
    chosen = max(found, key=lambda source: len(source.run_ids))
    return ContextCurves(
        setting=_narrowed(setting, chosen),
        curves={metric: _read(setting, chosen, axis, metric) for metric in METRICS},
        note=_note(setting, chosen, found),
    )


def _series(setting: Setting, axis: str) -> Iterator[_Source]:
    """Series of the newest evaluated step."""
    (step,) = setting.store.sql(f"select max(step) from {axis}").fetchall()[0]
    if step is not None:
        for (name, members), run_ids in _runs_with(setting, axis, "members", f"step = {step}"):
            yield _Source((axis,), name, members, run_ids, step)


def _tracked(setting: Setting, axis: str) -> Iterator[_Source]:
    if axis in _TRACKED:
        for (name, members), run_ids in _runs_with(setting, _TRACKED[axis][0], "''", "true"):
            yield _Source(_TRACKED[axis], name, members, run_ids)


def _runs_with(
    setting: Setting, table: str, members: str, condition: str
) -> list[tuple[tuple[str, str], frozenset[str]]]:
    """Posterior and ensemble members -> runs that have all metrics on the hardest split."""
    measured = " and ".join(f"{name} is not null and not isnan({name})" for name in METRICS)
    query = f"""select distinct posterior, coalesce({members}, ''), run_id from {table}
        where split = {quoted_text(setting.hardest_split)} and {condition} and {measured}"""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name, of, run_id in setting.store.sql(query).fetchall():
        found[name, of].add(run_id)
    return [(key, frozenset(found[key])) for key in sorted(found)]


def _read(setting: Setting, source: _Source, axis: str, metric: str) -> Curves:
    store = setting.store.of_runs(sorted(source.run_ids))
    curves: Curves = {}
    for table in source.tables:
        step = "last" if source.step is None else source.step
        found = store.median_and_band(metric, [axis], step=step, table=table).fetchnumpy()
        curves |= curves_along(axis, _without_other_ensembles(found, source.members))
    return curves


def _without_other_ensembles(found: Mapping[str, Any], members: str) -> Mapping[str, Any]:
    """A result without ensembles of other members, whose points would be on the same curve."""
    if "members" not in found:
        return found
    # Masked where a table says nothing of members.
    is_kept = np.isin(np.ma.filled(found["members"], ""), ["", members])
    return {name: column[is_kept] for name, column in found.items() if name != "members"}


def _narrowed(setting: Setting, source: _Source) -> Setting:
    """The setting with the drawn runs and posterior, so that titles and captions count them."""
    configs = configs_by_preset(setting.store)[setting.preset]
    drawn = [config for config in configs if config["run_id"] in source.run_ids]
    return replace(
        setting,
        posteriors=(source.posterior,),
        num_runs=len(drawn),
        num_unfinished=sum(config["state"] != "done" for config in drawn),
        store=setting.store.of_runs([config["run_id"] for config in drawn]),
        varying_seeds=varying_seeds(drawn),
    )


def _note(setting: Setting, chosen: _Source, found: list[_Source]) -> str:
    notes = []
    if len(chosen.run_ids) < setting.num_runs:
        shared = share_text(len(chosen.run_ids), setting.num_runs)
        notes.append(f"Only {shared} runs have these curves and are drawn.")
    skipped = {
        n for s in found if s.tables != chosen.tables and s.step is not None for n in s.run_ids
    }
    if skipped:
        notes.append(
            f"The series of {runs_text(len(skipped))} is not drawn, because the others have none."
        )
    ensembles = {source.members for source in found if source.members}
    if len(ensembles) > 1:
        notes.append(f"Of {len(ensembles)} ensembles, the one of {chosen.members} is drawn.")
    return " ".join(notes)
