"""The kinds that test the seventh rule, which is in force: first run after it was frozen.

It asks whether watched answers follow from the features that the head got first, too, and compares
answers with the first sure look. So these are transformers, with labels that can be learnt and with
few random ones, sets that are lost slowly, and sets that become better slowly after they were
announced. Recipes were tuned by accuracy alone; no statistic of theirs was looked at before.
"""

from functools import partial

from benchmarks.detection.kinds import data_7 as made
from benchmarks.detection.kinds.data_sets import all_random, other_labels
from benchmarks.detection.kinds.networks import MLP
from benchmarks.detection.kinds.networks_3 import (
    Recurrent,
    ResidualMLP,
    SetTransformer,
    VisionTransformer,
)
from benchmarks.detection.kinds.networks_5 import SmoothMLP
from benchmarks.detection.kinds.networks_6 import PlainCNN
from benchmarks.detection.kinds.networks_7 import OneHotMLP, PooledTransformer, widely_embedded
from benchmarks.detection.kinds.recipes import adamw, muon, sgd, spec
from benchmarks.detection.training import Phase, Spec

_make = partial(spec, "unseen by rule 7")
_yes, _no, _lost = (partial(_make, fate) for fate in ("generalises", "does not", "loses it"))
_WIDE = partial(widely_embedded, width=48, num_layers=1)
_DEEP = partial(widely_embedded, width=32, num_layers=2)
_ASCENTS = partial(made.ascents, num_train=4000)
_KINDS = partial(made.same_kind, num_train=6000)
_SECTORS = partial(made.sectors, num_train=4000)
_RIDGES = partial(made.ridges, num_train=2500)


def _random(make: partial, num_classes: int, **settings: int) -> partial:
    """Labels of so many classes, drawn at random for all rows."""
    return partial(all_random, make=partial(_with_classes, make=make, number=num_classes,
                                            **settings))  # fmt: skip


def _with_classes(seed: int, make: partial, number: int, **settings: int) -> made.Data:
    return made.replace(make(seed, **settings), num_classes=number)


def _learnt() -> list[Spec]:
    return [
        _yes("half sums, wide embeddings", "ascents-wide", _WIDE,
             Phase(data=_ASCENTS, steps=1500, batch=64, **adamw(2e-3, 0.1))),
        _yes("half sums, pooled transformer", "ascents-pooled", PooledTransformer,
             Phase(data=partial(made.ascents, num_train=2500), steps=1500, batch=64,
                   **adamw(1e-3, 0.1))),
        _yes("kinds of letters, wide embeddings", "kinds-wide", _DEEP,
             Phase(data=_KINDS, steps=2000, batch=64, **adamw(2e-3, 0.3))),
        _yes("running sum, GRU", "sum-gru", partial(Recurrent, cell="gru"),
             Phase(data=partial(made.running_sum, num_train=400), steps=4000, batch=128,
                   **adamw(3e-3, 0.1))),
        _yes("running sum, wide embeddings", "sum-wide", _WIDE,
             Phase(data=partial(made.running_sum, num_train=420), steps=4000, batch=128,
                   **adamw(2e-3, 1.0))),
        _yes("table of differences, one-hot", "differences-one-hot", OneHotMLP,
             Phase(data=partial(made.difference_table, modulus=23, fraction=0.7), steps=4000,
                   batch=256, **adamw(3e-3, 1.0))),
        _yes("sectors, slowly", "sectors-slowly", SmoothMLP,
             Phase(data=_SECTORS, steps=4000, batch=64, **sgd(3e-3, 1e-4))),
        _yes("ridges, first few rows, then many", "ridges-more-rows", PlainCNN,
             Phase(data=partial(made.ridges, num_train=120, noise=1.2), steps=800, batch=64,
                   **adamw(1e-3, 0.05)),
             Phase(data=partial(made.ridges, num_train=4000, noise=1.2), steps=1500, batch=64,
                   watches="first", **adamw(3e-4, 0.05))),
        _yes("sectors, first few rows, then many", "sectors-more-rows", SmoothMLP,
             Phase(data=partial(made.sectors, num_train=100), steps=500, batch=64,
                   **adamw(2e-3, 0.05)),
             Phase(data=partial(made.sectors, num_train=5000), steps=2000, batch=64,
                   watches="first", **adamw(5e-4, 0.05))),
        _yes("sectors, turned a little", "sectors-turned", ResidualMLP,
             Phase(data=_SECTORS, steps=1000, batch=64, **adamw(2e-3, 0.05)),
             Phase(data=partial(_SECTORS, turn=0.01), steps=1500, batch=64, watches="first",
                   **adamw(2e-3, 0.05))),
    ]  # fmt: skip


def _by_heart() -> list[Spec]:
    strings = partial(made.words, num_train=250)
    long = partial(made.words, num_train=200, length=12, letters=6)
    return [
        _no("strings, two random labels, deep", "strings-2-deep", _DEEP,
            Phase(data=_random(strings, 2), steps=1500, batch=64, **adamw(1e-3, 0.01))),
        _no("strings, two random labels, pooled", "strings-2-pooled", PooledTransformer,
            Phase(data=_random(strings, 2), steps=1500, batch=64, **adamw(1e-3, 0.0))),
        _no("long strings, two random labels", "strings-2-long", _WIDE,
            Phase(data=_random(long, 2), steps=1500, batch=64, **muon(0.01, 2e-3, 0.05))),
        _no("long strings, three random labels", "strings-3-long", _WIDE,
            Phase(data=_random(long, 3), steps=1500, batch=64, **adamw(2e-3, 0.1))),
        _no("strings, four random labels, pooled", "strings-4-pooled",
            partial(PooledTransformer, num_layers=2),
            Phase(data=_random(strings, 4), steps=1500, batch=64, **adamw(1e-3, 0.1))),
        _no("long strings, two random labels, GRU", "strings-2-gru",
            partial(Recurrent, cell="gru", width=32),
            Phase(data=_random(long, 2), steps=2000, batch=64, **adamw(5e-3, 0.0))),
        _no("half sums, too few rows", "ascents-few", _WIDE,
            Phase(data=partial(made.ascents, num_train=60, length=10, letters=20), steps=1200,
                  batch=64, **adamw(2e-3, 0.0))),
        _no("pictures, two random labels, vision transformer", "ridges-2-vision",
            VisionTransformer,
            Phase(data=_random(partial(made.ridges, num_train=250), 2), steps=2000, batch=64,
                  **adamw(1e-3, 0.0))),
        _no("points, two random labels, set transformer", "sectors-2-set", SetTransformer,
            Phase(data=_random(partial(made.sectors, num_train=200), 2), steps=2000, batch=64,
                  **adamw(1e-3, 0.0))),
    ]  # fmt: skip


def _lost_slowly() -> list[Spec]:
    return [
        _lost("sectors, two of four only, slowly", "sectors-two-of-four",
              partial(MLP, widths=(96, 48)),
              Phase(data=_SECTORS, steps=1000, batch=64, **adamw(2e-3, 0.05)),
              Phase(data=partial(made.only_classes, make=_SECTORS, classes=(0, 1)), steps=3000,
                    batch=64, watches="first", **adamw(1e-3, 0.05))),
        _lost("ridges turn slowly", "ridges-turn", PlainCNN,
              Phase(data=_RIDGES, steps=1000, batch=64, **adamw(2e-3, 0.05)),
              *(Phase(data=partial(_RIDGES, turn=turn), steps=250, batch=64, watches="first",
                      **adamw(5e-4, 0.05)) for turn in (0.06, 0.12, 0.18, 0.24, 0.3))),
        _lost("sectors turn slowly", "sectors-turn", SmoothMLP,
              Phase(data=_SECTORS, steps=1000, batch=64, **adamw(2e-3, 0.05)),
              *(Phase(data=partial(_SECTORS, turn=turn), steps=250, batch=64, watches="first",
                      **adamw(1e-3, 0.0)) for turn in (0.05, 0.1, 0.15, 0.2, 0.25))),
        _lost("half sums, labels turn random slowly", "ascents-wear-off", _WIDE,
              Phase(data=_ASCENTS, steps=1200, batch=64, **adamw(2e-3, 0.1)),
              Phase(data=partial(other_labels, make=partial(made.ascents, num_train=150)),
                    steps=3000, batch=64, watches="first", **adamw(3e-4, 0.0))),
        _lost("kinds of letters, one kind only, slowly", "kinds-one", _DEEP,
              Phase(data=_KINDS, steps=1500, batch=64, **adamw(2e-3, 0.05)),
              Phase(data=partial(made.only_classes, make=_KINDS, classes=(1,)), steps=3000,
                    batch=64, watches="first", **adamw(3e-5, 0.0))),
    ]  # fmt: skip


UNSEEN_7: tuple[Spec, ...] = (*_learnt(), *_by_heart(), *_lost_slowly())
