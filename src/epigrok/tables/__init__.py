"""Tables of many runs, read as one: the store, its queries, groups of runs, export. No torch.

Every query over the tables of runs belongs here. `records` reads the files of a single run;
`figures` and `report` draw and describe the results.
"""

from typing import TYPE_CHECKING

from epigrok.lazy_names import loader

if TYPE_CHECKING:
    from epigrok.tables.store import SweepStore, open_sweep

__all__ = ["SweepStore", "open_sweep"]

__getattr__ = loader(__name__, {"SweepStore": "store", "open_sweep": "store"})
