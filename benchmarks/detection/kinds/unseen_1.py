"""The kinds that tested the first rule: first run after it was frozen.

Their recipes were tuned by accuracy alone, so that a run does what it is here for; no statistic of
theirs was looked at before.
"""

from functools import partial

from benchmarks.detection.kinds.data_1 import group, imbalanced, spheres, table, teacher
from benchmarks.detection.kinds.networks import CNN, MLP, Transformer
from benchmarks.detection.kinds.pictures import pictures
from benchmarks.detection.kinds.recipes import (
    SMALL_MLP,
    TABLE_MLP,
    TABLE_TRANSFORMER,
    adamw,
    ivon,
    muon,
    sgd,
    spec,
)
from benchmarks.detection.kinds.sequences import (
    automaton,
    characters,
    counting,
    in_context_products,
    retrieval,
)
from benchmarks.detection.training import Phase, Spec

_make = partial(spec, "unseen by rule 1")
_glyphs, _shapes = partial(pictures, what="glyphs"), partial(pictures, what="shapes")
_add = partial(table, operation="add", modulus=31)
_PICTURE_CNN = partial(CNN, channels=8, dropout=0.2)
_PICTURE_MLP = partial(MLP, widths=(128, 64))


def _groups() -> list[Spec]:
    yes, no = partial(_make, "generalises", "group"), partial(_make, "does not")
    s4, d15 = partial(group, name="s4"), partial(group, name="d15")
    return [
        yes("s4", TABLE_MLP, Phase(data=partial(s4, fraction=0.7), steps=5000, **adamw())),
        yes("d15", TABLE_TRANSFORMER,
            Phase(data=partial(d15, fraction=0.7), steps=3000, batch=256, **adamw())),
        yes("a5", partial(MLP, widths=(256, 64), embedding=64),
            Phase(data=partial(group, name="a5", fraction=0.6), steps=5000, **adamw())),
        yes("s5", partial(MLP, widths=(256, 64), embedding=64),
            Phase(data=partial(group, name="s5", fraction=0.5), steps=5000, **adamw(3e-3, 0.5))),
        no("group, little data", "a5-little", partial(MLP, widths=(256, 64), embedding=64),
           Phase(data=partial(group, name="a5", fraction=0.25), steps=4000, **adamw())),
        no("group, random labels", "d15-random", TABLE_TRANSFORMER,
           Phase(data=partial(d15, fraction=0.7, random_labels=True), steps=2000, batch=256,
                 **adamw())),
    ]  # fmt: skip


def _sequences() -> list[Spec]:
    yes, no = partial(_make, "generalises"), partial(_make, "does not")
    reader = partial(Transformer, width=64, num_layers=2)
    every = partial(reader, answers="all")
    asked = partial(Transformer, width=64, num_layers=2, answers="odd")
    return [
        yes("automaton", "automaton-5", every,
            Phase(data=partial(automaton, num_states=5, length=10, num_train=5000), steps=2000,
                  batch=64, **adamw(2e-3, 0.1))),
        no("automaton, random labels", "automaton-2-random", reader,
           Phase(data=partial(automaton, num_states=2, length=14, num_train=300,
                              random_labels=True), steps=2200, batch=64, **adamw(2e-3, 0.0))),
        yes("counting", "counting-10", reader,
            Phase(data=partial(counting, length=10, vocabulary=6, num_train=3000), steps=2000,
                  batch=64, **adamw(1e-3, 0.1))),
        no("counting, little data", "counting-10-little", reader,
           Phase(data=partial(counting, length=10, vocabulary=6, num_train=150), steps=1500,
                 batch=64, **adamw(1e-3, 0.0))),
        yes("retrieval in context", "retrieval", reader,
            Phase(data=partial(retrieval, num_keys=8, num_values=8, num_pairs=4,
                               num_train=1500), steps=1000, batch=64, **adamw(2e-3, 0.1))),
        no("retrieval in context, few tasks", "retrieval-few", reader,
           Phase(data=partial(retrieval, num_keys=8, num_values=8, num_pairs=4,
                              num_train=4000, num_maps=2), steps=1500, batch=64,
                 **adamw(1e-3, 0.1))),
        yes("products in context", "products-31", asked,
            Phase(data=partial(in_context_products, modulus=31, num_tasks=26, num_pairs=6,
                               num_train=60000), steps=1500, batch=256,
                  **muon(0.04, 5e-3, 0.1))),
        no("products in context, few tasks", "products-13", asked,
           Phase(data=partial(in_context_products, modulus=13, num_tasks=9, num_pairs=6,
                              num_train=20000), steps=800, batch=64, **muon())),
        _make("in between", "characters, more text", "characters-30k",
              partial(Transformer, width=64, num_layers=2, answers="all", dropout=0.1),
              Phase(data=partial(characters, num_train=30000), steps=2000, batch=32,
                    **adamw(1e-3, 0.1))),
    ]  # fmt: skip


def _pictures() -> list[Spec]:
    yes, no = partial(_make, "generalises"), partial(_make, "does not")
    few = {"steps": 1500, "batch": 64}
    return [
        yes("pictures", "glyphs-cnn", _PICTURE_CNN,
            Phase(data=partial(_glyphs, num_train=4000, noise=0.2), steps=2000, batch=64,
                  **adamw(2e-3, 0.1))),
        yes("pictures", "shapes-cnn-sgd", _PICTURE_CNN,
            Phase(data=partial(_shapes, num_train=2000, noise=0.2), **few, **sgd(0.02, 1e-3))),
        yes("pictures", "shapes-mlp", partial(_PICTURE_MLP, dropout=0.1),
            Phase(data=partial(_shapes, num_train=4000, noise=0.2), steps=3000, batch=64,
                  **adamw(1e-3, 0.3))),
        yes("pictures, two classes", "glyphs-2", _PICTURE_CNN,
            Phase(data=partial(_glyphs, num_train=4000, noise=0.2, num_classes=2), steps=2000,
                  batch=64, **adamw(2e-3, 0.1))),
        no("pictures, random labels", "glyphs-cnn-random", partial(CNN, channels=8),
           Phase(data=partial(_glyphs, num_train=500, random_labels=True), steps=2500, batch=64,
                 **adamw(2e-3, 0.0))),
        no("pictures, two classes, random labels", "glyphs-2-random", partial(CNN, channels=8),
           Phase(data=partial(_glyphs, num_train=400, random_labels=True, num_classes=2),
                 steps=2000, batch=64, **adamw(2e-3, 0.0))),
        no("pictures, little data", "glyphs-mlp-little", _PICTURE_MLP,
           Phase(data=partial(_glyphs, num_train=100), steps=3000, batch=64,
                 **adamw(1e-3, 0.0))),
        no("shift", "glyphs-rotated", _PICTURE_CNN,
           Phase(data=partial(_glyphs, num_train=2000, watched="rotated"), **few,
                 **adamw(2e-3, 0.1))),
        no("shift", "shapes-noisy", _PICTURE_CNN,
           Phase(data=partial(_shapes, num_train=2000, noise=0.2, watched="noisy"), **few,
                 **sgd(0.02, 1e-3))),
        _make("blind spot", "shortcut", "glyphs-shortcut", _PICTURE_CNN,
              Phase(data=partial(_glyphs, num_train=2000, noise=0.5, watched="shortcut"), **few,
                    **adamw(2e-3, 0.1))),
    ]  # fmt: skip


def _vectors() -> list[Spec]:
    yes, no = partial(_make, "generalises"), partial(_make, "does not")
    return [
        yes("spheres", "spheres-sgd", SMALL_MLP,
            Phase(data=partial(spheres, width=4, num_classes=4, num_train=3000), steps=6000,
                  batch=64, **sgd(0.02, 1e-3))),
        yes("large first weights", "teacher-large", partial(MLP, widths=(128, 64), scale=3.0),
            Phase(data=partial(teacher, width=16, num_classes=4, num_train=4000), steps=8000,
                  batch=128, loss="squares", **adamw(1e-3, 0.5))),
        no("imbalance", "imbalanced", SMALL_MLP,
           Phase(data=partial(imbalanced, width=30, num_train=3000), steps=5000, batch=128,
                 **adamw(1e-3, 0.0))),
        _make("in between", "wrong labels", "teacher-12-40-wrong", partial(MLP, widths=(256, 64)),
              Phase(data=partial(teacher, width=12, num_classes=3, num_train=1200,
                                 wrong_share=0.4), steps=6000, batch=128, **adamw(1e-3, 0.0))),
    ]  # fmt: skip


def _tables() -> list[Spec]:
    yes, no = partial(_make, "generalises"), partial(_make, "does not")
    return [
        yes("modular, IVON", "add-31-ivon", TABLE_MLP,
            Phase(data=partial(_add, fraction=0.7), steps=3500, batch=256, **ivon())),
        no("modular, IVON, no decay", "add-31-ivon-no-decay", TABLE_MLP,
           Phase(data=partial(_add, fraction=0.5), steps=3500, batch=256, **ivon(1e-7))),
        no("modular, IVON, random labels", "add-31-ivon-random", TABLE_MLP,
           Phase(data=partial(_add, fraction=0.6, random_labels=True), steps=3000, batch=256,
                 **ivon(3e-4))),
        no("hard table", "cubic-31", TABLE_MLP,
           Phase(data=partial(table, operation="cubic", modulus=31, fraction=0.5), steps=6000,
                 batch=256, **adamw())),
        no("hard table", "quadratic-31", TABLE_TRANSFORMER,
           Phase(data=partial(table, operation="quadratic", modulus=31, fraction=0.35),
                 steps=2500, batch=256, **adamw())),
    ]  # fmt: skip


def _phases() -> list[Spec]:
    lost = partial(_make, "loses it")
    s4 = partial(group, name="s4")
    return [
        lost("group, data taken away", "s4-ungrok", TABLE_MLP,
             Phase(data=partial(s4, fraction=0.8), steps=4000, batch=256, **adamw()),
             Phase(data=lambda _: s4(0, fraction=0.15), steps=4000, batch=128, watches="first",
                   **adamw(2e-3, 0.3))),
        lost("wrong labels appear", "teacher-turns-wrong", SMALL_MLP,
             Phase(data=partial(teacher, width=20, num_classes=5, num_train=3000), steps=1500,
                   batch=128, **adamw(1e-3, 0.1)),
             Phase(data=lambda _: teacher(0, width=20, num_classes=5, num_train=500,
                                          wrong_share=0.8),
                   steps=4000, batch=128, watches="first", **adamw(1e-3, 0.0))),
        lost("fine-tuning forgets", "glyphs-forgotten", partial(CNN, channels=8),
             Phase(data=partial(_glyphs, num_train=4000, noise=0.2), steps=1200, batch=64,
                   **adamw(2e-3, 0.1)),
             Phase(data=lambda _: _glyphs(5, num_train=200, noise=0.2, random_labels=True),
                   steps=2000,
                   batch=64, watches="first", **adamw(2e-3, 0.0))),
        _make("in between", "fine-tuning on little data", "glyphs-tuned", partial(CNN, channels=8),
              Phase(data=partial(_glyphs, num_train=3000), steps=800, batch=64,
                    is_watched=False, **adamw(2e-3, 0.1)),
              Phase(data=lambda _: _shapes(3, num_train=80), steps=2500, batch=64, new_head=True,
                    **adamw(1e-3, 0.0))),
    ]  # fmt: skip


UNSEEN_1: tuple[Spec, ...] = (
    *_groups(),
    *_sequences(),
    *_pictures(),
    *_vectors(),
    *_tables(),
    *_phases(),
)
