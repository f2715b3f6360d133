"""Many runs read as one: the store, its queries, groups of runs, export. No torch.

Here belongs every question to the tables of runs. Files of a single run are the business of
`records`; drawing and wording the answers that of `figures` and `report`.
"""

from typing import TYPE_CHECKING

from epigrok.lazy_names import loader

if TYPE_CHECKING:
    from epigrok.tables.store import SweepStore, open_sweep

__all__ = ["SweepStore", "open_sweep"]

__getattr__ = loader(__name__, {"SweepStore": "store", "open_sweep": "store"})
