"""All runs of the suite, by name: what is trained, on what, and what it was made to do.

`development.py` has the kinds that the first rule was chosen on, `unseen_N.py` those that were
first read after the Nth rule was frozen; `unseen_3.py` has those of the second, too. The rule in
force is the seventh, and was chosen on all but the last of these.
"""

from benchmarks.detection.kinds.development import DEVELOPMENT
from benchmarks.detection.kinds.unseen_1 import UNSEEN_1
from benchmarks.detection.kinds.unseen_3 import UNSEEN_3
from benchmarks.detection.kinds.unseen_4 import UNSEEN_4
from benchmarks.detection.kinds.unseen_5 import UNSEEN_5
from benchmarks.detection.kinds.unseen_6 import UNSEEN_6
from benchmarks.detection.kinds.unseen_7 import UNSEEN_7
from benchmarks.detection.training import Spec

SUITE: dict[str, Spec] = {
    spec.name: spec
    for spec in (
        *DEVELOPMENT,
        *UNSEEN_1,
        *UNSEEN_3,
        *UNSEEN_4,
        *UNSEEN_5,
        *UNSEEN_6,
        *UNSEEN_7,
    )
}
