"""The development kinds: the definition's details and the rule's constants were chosen on these."""

from functools import partial

from benchmarks.detection.kinds.data_1 import parity, random_vectors, table, teacher
from benchmarks.detection.kinds.networks import Transformer
from benchmarks.detection.kinds.recipes import (
    SMALL_MLP,
    TABLE_MLP,
    TABLE_TRANSFORMER,
    adamw,
    muon,
    sgd,
    spec,
)
from benchmarks.detection.kinds.sequences import characters
from benchmarks.detection.training import Phase, Spec

_add = partial(table, operation="add", modulus=31)
_sub = partial(table, operation="sub", modulus=31)
_parity = partial(parity, num_bits=30, num_relevant=3)
_make = partial(spec, "development")


def _generalise() -> list[Spec]:
    make = partial(_make, "generalises")
    return [
        make(
            "modular, MLP",
            "add-31",
            TABLE_MLP,
            Phase(data=partial(_add, fraction=0.6), steps=6000, batch=256, **adamw()),
        ),
        make(
            "modular, MLP",
            "mul-37",
            TABLE_MLP,
            Phase(
                data=partial(table, operation="mul", modulus=37, fraction=0.6),
                steps=6000,
                batch=256,
                **adamw(),
            ),
        ),
        make(
            "modular, MLP",
            "add-31-muon",
            TABLE_MLP,
            Phase(
                data=partial(_add, fraction=0.7),
                steps=4500,
                batch=256,
                **muon(0.01, 2e-3, 1.0),
            ),
        ),
        make(
            "modular, transformer",
            "sub-31",
            TABLE_TRANSFORMER,
            Phase(data=partial(_sub, fraction=0.7), steps=3500, batch=256, **adamw()),
        ),
        make(
            "modular, transformer",
            "add-29",
            TABLE_TRANSFORMER,
            Phase(
                data=partial(table, operation="add", modulus=29, fraction=0.7),
                steps=3500,
                batch=256,
                **adamw(3e-3, 0.5),
            ),
        ),
        make(
            "parity",
            "parity-30-3",
            SMALL_MLP,
            Phase(data=partial(_parity, num_train=1000), steps=8000, batch=64, **sgd(0.05, 1e-3)),
        ),
        make(
            "teacher",
            "teacher-20",
            SMALL_MLP,
            Phase(
                data=partial(teacher, width=20, num_classes=5, num_train=4000),
                steps=4000,
                batch=128,
                **adamw(1e-3, 0.1),
            ),
        ),
    ]


def _do_not() -> list[Spec]:
    make = partial(_make, "does not")
    return [
        make(
            "modular, random labels",
            "add-31-random",
            TABLE_MLP,
            Phase(
                data=partial(_add, fraction=0.6, random_labels=True),
                steps=6000,
                batch=256,
                **adamw(),
            ),
        ),
        make(
            "modular, no decay",
            "sub-31-no-decay",
            TABLE_TRANSFORMER,
            Phase(data=partial(_sub, fraction=0.5), steps=2500, batch=256, **adamw(1e-3, 0.0)),
        ),
        make(
            "modular, no decay",
            "add-31-no-decay",
            TABLE_MLP,
            Phase(data=partial(_add, fraction=0.5), steps=6000, batch=256, **adamw(1e-3, 0.0)),
        ),
        make(
            "modular, little data",
            "add-31-little",
            TABLE_MLP,
            Phase(data=partial(_add, fraction=0.25), steps=6000, batch=256, **adamw()),
        ),
        make(
            "two classes, random labels",
            "parity-30-random",
            SMALL_MLP,
            Phase(
                data=partial(_parity, num_train=600, random_labels=True),
                steps=6000,
                batch=64,
                **sgd(0.05, 1e-4),
            ),
        ),
        make(
            "parity, little data",
            "parity-30-little",
            SMALL_MLP,
            Phase(data=partial(_parity, num_train=200), steps=6000, batch=64, **sgd(0.05, 1e-4)),
        ),
        make(
            "teacher, little data",
            "teacher-60-little",
            SMALL_MLP,
            Phase(
                data=partial(teacher, width=60, num_classes=10, num_train=200, hidden=40),
                steps=4000,
                batch=128,
                **adamw(1e-3, 0.1),
            ),
        ),
        make(
            "vectors, random labels",
            "vectors-random",
            SMALL_MLP,
            Phase(
                data=partial(random_vectors, width=30, num_classes=10, num_train=500),
                steps=4000,
                batch=128,
                **adamw(1e-3, 0.0),
            ),
        ),
    ]


def _others() -> list[Spec]:
    return [
        _make(
            "loses it",
            "modular, data taken away",
            "add-31-ungrok",
            TABLE_MLP,
            Phase(data=partial(_add, fraction=0.7), steps=4000, batch=256, **adamw()),
            Phase(
                data=lambda seed: partial(_add, fraction=0.15)(0),
                steps=6000,
                batch=128,
                watches="first",
                **adamw(2e-3, 0.3),
            ),
        ),
        _make(
            "in between",
            "modular, half learnt",
            "squares-31-muon",
            TABLE_MLP,
            Phase(
                data=partial(table, operation="squares", modulus=31, fraction=0.7),
                steps=3000,
                batch=256,
                **muon(),
            ),
        ),
        _make(
            "in between",
            "characters",
            "characters-6k",
            partial(Transformer, width=64, num_layers=2, answers="all"),
            Phase(
                data=partial(characters, num_train=6000), steps=2500, batch=32, **adamw(1e-3, 0.0)
            ),
        ),
        _make(
            "in between",
            "teacher, wrong labels",
            "teacher-20-half-wrong",
            SMALL_MLP,
            Phase(
                data=partial(teacher, width=20, num_classes=5, num_train=800, wrong_share=0.5),
                steps=4000,
                batch=128,
                **adamw(1e-3, 0.0),
            ),
        ),
    ]


DEVELOPMENT: tuple[Spec, ...] = (*_generalise(), *_do_not(), *_others())
