"""What the monitor announced of each run and split, from the table `tolerance`."""

from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from epigrok.tables.store import SweepStore


@dataclass(frozen=True)
class Announcement:
    """How one split of one run was judged, without labels."""

    run_id: str
    split: str
    generalised_step: int | None
    """When it was first announced as generalised."""
    ratio: float | None
    """The last tolerance ratio that could be read; before the training split is fitted it says
    nothing, and does not count."""


def announcements(store: SweepStore) -> list[Announcement]:
    """One for each run and watched split, in order of runs; empty where no run tracked it."""
    query = (
        "select run_id, split, step, state, tolerance_ratio from tolerance "
        "where state is not null order by run_id, split, step"
    )
    found = []
    for (run_id, split), members in groupby(store.sql(query).fetchall(), key=itemgetter(0, 1)):
        looks = list(members)
        ratios = [ratio for *_, state, ratio in looks if state != "fitting" and ratio is not None]
        found.append(
            Announcement(
                run_id=run_id,
                split=split,
                generalised_step=next((row[2] for row in looks if row[3] == "generalised"), None),
                ratio=ratios[-1] if ratios else None,
            )
        )
    return found
