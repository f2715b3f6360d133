"""When runs fitted, generalised and were most uncertain: run by run, and over a setting."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from statistics import median
from typing import Any

from epigrok.evaluation import GrokkingTimes, grokking_times
from epigrok.evaluation.grokking_times import ACCURACY_THRESHOLD, NEEDED_COLUMNS
from epigrok.evaluation.schema import EPISTEMIC_FINAL
from epigrok.tables.groups import Setting
from epigrok.tables.store import SweepStore


@dataclass(frozen=True)
class Events:
    """Medians over the runs of a setting, of one posterior on one split."""

    split: str
    posterior: str
    num_runs: int
    num_generalised: int
    """Runs whose accuracy passed the threshold for good."""
    num_led: int
    """Of those, runs whose uncertainty peaked before they generalised."""
    peak_step: float | None
    """Of the runs with any uncertainty; None where no run has."""
    peak_epistemic: float
    generalised_step: float | None
    """Of the runs that generalised; None where none did."""
    share_when_generalised: float | None
    """Uncertainty at that evaluation, over its peak."""
    final_share: float

    def sentence(self) -> str:
        """A sentence on what happened, with numbers."""
        if self.peak_step is None:
            return f"EU of {self.posterior} on {self.split} is zero throughout."
        text = (
            f"EU of {self.posterior} on {self.split} peaks at step {self.peak_step:,.0f} "
            f"({self.peak_epistemic:.2g} nats) and "
        )
        if self.generalised_step is None or self.share_when_generalised is None:
            return text + (
                f"ends at {100 * self.final_share:.3g} % of it; accuracy does not stay above "
                f"{ACCURACY_THRESHOLD:g}."
            )
        runs = (
            "" if self.num_runs == 1 else f" in {self.num_generalised} of {self.num_runs} runs,"
            f" after the peak in {self.num_led} of them"
        )  # fmt: skip
        return text + (
            f"is at {100 * self.share_when_generalised:.3g} % of it when accuracy passes "
            f"{ACCURACY_THRESHOLD:g} (step {self.generalised_step:,.0f}{runs}); it ends at "
            f"{100 * self.final_share:.3g} %."
        )


def times_by_run(store: SweepStore) -> dict[str, list[GrokkingTimes]]:
    """Run id -> its times, one per split and sampled posterior."""
    return {run_id: grokking_times(rows) for run_id, rows in rows_by_run(store)}


def setting_events(setting: Setting) -> dict[tuple[str, str], Events]:
    """Events of every sampled posterior on every split, by split and posterior."""
    found: dict[tuple[str, str], list[tuple[GrokkingTimes, float | None]]] = defaultdict(list)
    for _, rows in rows_by_run(setting.store):
        for times in grokking_times(rows):
            found[times.split, times.posterior].append((times, _share(times, rows)))
    return {key: _events(*key, members) for key, members in found.items()}


def rows_by_run(
    store: SweepStore, further: Sequence[str] = ()
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Id and rows of every run, in order of steps; `further` adds columns to the usual ones."""
    names = (*NEEDED_COLUMNS, *further)
    present = " and ".join(f"{name} is not null" for name in NEEDED_COLUMNS)
    query = f"select run_id, {', '.join(names)} from metrics where {present}"
    rows = store.sql(f"{query} order by run_id, step").fetchall()
    for run_id, members in groupby(rows, key=itemgetter(0)):
        yield run_id, [dict(zip(names, values)) for _, *values in members]


def _share(times: GrokkingTimes, rows: list[dict[str, Any]]) -> float | None:
    """Uncertainty over its peak, at the evaluation at which the run generalised."""
    for row in rows:
        identity = (row["split"], row["posterior"], row["step"])
        if identity == (times.split, times.posterior, times.generalised_step):
            return _over_peak(row[EPISTEMIC_FINAL], times)
    return None


def _over_peak(epistemic: float, times: GrokkingTimes) -> float:
    return epistemic / times.peak_epistemic if times.peak_epistemic else 0.0


def _events(
    split: str, posterior: str, members: list[tuple[GrokkingTimes, float | None]]
) -> Events:
    times = [time for time, _ in members]
    generalised = [t.generalised_step for t in times if t.generalised_step is not None]
    shares = [share for _, share in members if share is not None]
    leads = [time.lead_of_peak for time in times]
    peaks = [time.peak_step for time in times if time.peak_step is not None]
    return Events(
        split=split,
        posterior=posterior,
        num_runs=len(times),
        num_generalised=len(generalised),
        num_led=sum(lead is not None and lead > 0 for lead in leads),
        peak_step=median(peaks) if peaks else None,
        peak_epistemic=median(time.peak_epistemic for time in times),
        generalised_step=median(generalised) if generalised else None,
        share_when_generalised=median(shares) if shares else None,
        final_share=median(_over_peak(time.final_epistemic, time) for time in times),
    )
