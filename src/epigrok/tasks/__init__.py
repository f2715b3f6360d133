"""Tasks: which exist, which are held out, and the sequences they make. One file per family.

The settings of the built-in families live in `config`; how predictions are scored, in `evaluation`.
"""

from epigrok.tasks.family import (
    Hypotheses,
    InContextFamily,
    TaskFamily,
    World,
    build_family,
    register_task,
    sample_world,
)
from epigrok.tasks.sequences import Batch, rows_of_examples, with_context_noise

__all__ = [
    "Batch",
    "Hypotheses",
    "InContextFamily",
    "TaskFamily",
    "World",
    "build_family",
    "register_task",
    "rows_of_examples",
    "sample_world",
    "with_context_noise",
]
