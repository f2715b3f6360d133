"""All runs of the suite, by name."""

from benchmarks.detection.suite_development import DEVELOPMENT
from benchmarks.detection.suite_fresh import FRESH
from benchmarks.detection.suite_held_out import HELD_OUT
from benchmarks.detection.suite_later import LATER
from benchmarks.detection.suite_latest import LATEST
from benchmarks.detection.suite_sixth import SIXTH
from benchmarks.detection.training import Spec

SUITE: dict[str, Spec] = {
    spec.name: spec for spec in (*DEVELOPMENT, *HELD_OUT, *FRESH, *LATER, *LATEST, *SIXTH)
}
