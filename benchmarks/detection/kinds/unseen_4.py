"""The kinds that tested the fourth rule: first run after it was frozen.

Many generalise and lose it again, in different ways, or wobble and keep it. Recipes were tuned by
accuracy alone; no statistic of theirs was looked at before.
"""

from functools import partial

from benchmarks.detection.kinds import data_4 as made
from benchmarks.detection.kinds.data_sets import all_random, other_labels
from benchmarks.detection.kinds.networks import MLP, Transformer
from benchmarks.detection.kinds.networks_3 import DepthwiseCNN, Recurrent, ResidualMLP, TanhMLP
from benchmarks.detection.kinds.networks_4 import GatedMLP, Mixer, SignalCNN
from benchmarks.detection.kinds.recipes import adamw, muon, rmsprop, sgd, spec
from benchmarks.detection.training import Phase, Spec

_make = partial(spec, "unseen by rule 4")
_yes, _no, _lost = (partial(_make, fate) for fate in ("generalises", "does not", "loses it"))
_GRU = partial(Recurrent, cell="gru")
_TRANSFORMER = partial(Transformer, width=48, num_layers=1)
_XOR_MLP = partial(MLP, widths=(192, 64), embedding=48)
_BLOB_MLP = partial(MLP, widths=(96, 48))
_BLOBS = partial(made.blobs, num_train=2000)
_SIGNALS = partial(made.signals, num_train=3000)
_ORDER = partial(made.order_of_three, num_train=4000)
_BOARD = partial(made.board, num_train=3000)
_POINTER = partial(made.pointer, num_train=4000)
_SPOT = partial(made.spot, num_train=2000)


def _again(make: partial) -> partial:
    """The data of the first phase in a later one."""
    return partial(_first, make=make)


def _first(_: int, make: partial) -> made.Data:
    return make(0)


def _learnt() -> list[Spec]:
    return [
        _yes("clouds", "blobs-gated", GatedMLP,
             Phase(data=_BLOBS, steps=600, batch=64, **adamw(2e-3, 0.05))),
        _yes("shapes of signals", "signals-cnn", SignalCNN,
             Phase(data=_SIGNALS, steps=600, batch=64, **adamw(2e-3, 0.05))),
        _yes("order of three", "order-residual", partial(ResidualMLP, width=64),
             Phase(data=_ORDER, steps=1000, batch=64, **muon(0.02, 2e-3, 0.05))),
        _yes("pointer", "pointer", _TRANSFORMER,
             Phase(data=_POINTER, steps=500, batch=64, **adamw(2e-3, 0.05))),
        _yes("nested brackets", "brackets-gru", _GRU,
             Phase(data=partial(made.brackets, num_train=3000), steps=900, batch=64,
                   **adamw(5e-3, 0.01))),
        _yes("exclusive or", "xor", _XOR_MLP,
             Phase(data=partial(made.exclusive_or, fraction=0.6), steps=1500, batch=256,
                   **adamw(3e-3))),
    ]  # fmt: skip


def _not_learnt() -> list[Spec]:
    return [
        _no("shapes of signals, random labels", "signals-random", SignalCNN,
            Phase(data=partial(all_random, make=partial(made.signals, num_train=120)),
                  steps=2000, batch=64, **sgd(0.05, 0.0))),
        _no("board, random labels", "board-random", partial(MLP, widths=(256, 128)),
            Phase(data=partial(all_random, make=partial(made.board, num_train=80)),
                  steps=2500, batch=64, **muon(0.02, 2e-3, 0.0))),
        _no("pointer, little data", "pointer-little", _TRANSFORMER,
            Phase(data=partial(made.pointer, num_train=150), steps=1200, batch=64,
                  **adamw(2e-3, 0.0))),
        _no("nested brackets, random labels", "brackets-random", _GRU,
            Phase(data=partial(all_random, make=partial(made.brackets, num_train=120)),
                  steps=1500, batch=64, **adamw(5e-3, 0.0))),
        _no("clouds, random labels", "blobs-random", GatedMLP,
            Phase(data=partial(all_random, make=partial(made.blobs, num_train=200)),
                  steps=1500, batch=64, loss="smoothed", **adamw(2e-3, 0.0))),
        _no("spot, random labels", "spot-random", Mixer,
            Phase(data=partial(all_random, make=partial(made.spot, num_train=200)),
                  steps=1200, batch=64, **rmsprop(1e-3))),
    ]  # fmt: skip


def _lost_again() -> list[Spec]:
    return [
        _lost("shapes of signals, labels turn random", "signals-lost", SignalCNN,
              Phase(data=_SIGNALS, steps=400, batch=64, **adamw(2e-3, 0.05)),
              Phase(data=partial(other_labels, make=partial(made.signals, num_train=100)),
                    steps=1000, batch=64, watches="first", **adamw(2e-3, 0.0))),
        _lost("spot, tuned on two classes", "spot-two-classes", DepthwiseCNN,
              Phase(data=_SPOT, steps=400, batch=64, **adamw(3e-3, 0.05)),
              Phase(data=partial(made.spot, num_train=300, only=(2, 6)), steps=400, batch=64,
                    watches="first", **sgd(0.05, 0.0))),
        _lost("clouds, wrong labels without decay", "blobs-wrong", _BLOB_MLP,
              Phase(data=_BLOBS, steps=800, batch=64, **adamw(2e-3, 0.5)),
              Phase(data=partial(other_labels, share=0.8,
                                 make=partial(made.blobs, num_train=300)),
                    steps=2500, batch=64, watches="first", **adamw(2e-3, 0.0))),
        _lost("order of three, elsewhere", "order-elsewhere", TanhMLP,
              Phase(data=_ORDER, steps=1000, batch=64, **adamw(3e-3, 0.01)),
              Phase(data=partial(_ORDER, shift=1.5, turned=True), steps=800, batch=64,
                    watches="first", **adamw(3e-3, 0.01))),
        _lost("two questions, one forgotten", "questions-forgotten", SignalCNN,
              Phase(data=partial(made.both_questions, num_train=3000, trained=("shape", "speed")),
                    steps=600, batch=64, **adamw(3e-3, 0.01)),
              Phase(data=_again(partial(made.both_questions, num_train=3000, trained=("speed",))),
                    steps=900, batch=64, watches="first", **adamw(3e-3, 1.0))),
        _lost("pointer, another rule", "pointer-other-rule", _TRANSFORMER,
              Phase(data=_POINTER, steps=500, batch=64, **adamw(2e-3, 0.05)),
              Phase(data=partial(made.pointer, num_train=400, first=True), steps=300, batch=64,
                    watches="first", **adamw(1e-3, 0.0))),
        _lost("board, rate too high", "board-diverges", partial(MLP, widths=(96, 96)),
              Phase(data=_BOARD, steps=1500, batch=64, **adamw(3e-3, 0.01)),
              Phase(data=_again(_BOARD), steps=400, batch=64, watches="first", **sgd(3.0, 0.0))),
        _lost("exclusive or, labels turn random", "xor-lost", _XOR_MLP,
              Phase(data=partial(made.exclusive_or, fraction=0.7), steps=1500, batch=256,
                    **adamw(3e-3)),
              Phase(data=partial(made.exclusive_or, fraction=0.3, random_labels=True),
                    steps=800, batch=256, watches="first", **adamw(2e-3, 0.3))),
    ]  # fmt: skip


def _kept() -> list[Spec]:
    """They wobble."""
    restart = adamw(1e-2, 0.01)
    return [
        _yes("clouds, high rate", "blobs-high-rate", _BLOB_MLP,
             Phase(data=_BLOBS, steps=2500, batch=64, **adamw(2e-2, 0.05))),
        _yes("spot, small batches", "spot-small-batches", Mixer,
             Phase(data=_SPOT, steps=3000, batch=4, **sgd(0.01, 0.0))),
        _yes("order of three, restarts", "order-restarts", partial(MLP, widths=(96, 48)),
             Phase(data=_ORDER, steps=1000, batch=64, **adamw(3e-3, 0.01)),
             *(Phase(data=_again(_ORDER), steps=600, batch=64, watches="first", **restart)
               for _ in range(2))),
        _yes("shapes of signals, other rows", "signals-other-rows", SignalCNN,
             Phase(data=_SIGNALS, steps=400, batch=64, **adamw(2e-3, 0.05)),
             Phase(data=partial(made.signals, num_train=1500), steps=400, batch=64,
                   watches="first", **adamw(2e-3, 0.05))),
    ]  # fmt: skip


UNSEEN_4: tuple[Spec, ...] = (*_learnt(), *_not_learnt(), *_lost_again(), *_kept())
