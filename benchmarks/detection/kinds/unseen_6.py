"""The kinds that tested the sixth rule: first run after it was frozen.

Its new clause asks which answers stood before the seen inputs were learnt. So these are networks
that hardly move between their rows (large weights, large features, slow bodies, frozen ones), with
labels that can be learnt and with labels that cannot. Recipes were tuned by accuracy alone; no
statistic of theirs was looked at before.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from benchmarks.detection.kinds import data_6 as made
from benchmarks.detection.kinds.data_sets import all_random, other_labels
from benchmarks.detection.kinds.networks import MLP, Transformer
from benchmarks.detection.kinds.networks_3 import Recurrent, ResidualMLP
from benchmarks.detection.kinds.networks_5 import SmoothMLP
from benchmarks.detection.kinds.networks_6 import (
    LargeFeatures,
    MotifCNN,
    PlainCNN,
    RandomFeatures,
    enlarged,
)
from benchmarks.detection.kinds.recipes import adamw, muon, sgd, spec
from benchmarks.detection.training import Phase, Spec

_make = partial(spec, "unseen by rule 6")
_yes, _no, _lost = (partial(_make, fate) for fate in ("generalises", "does not", "loses it"))
_TRANSFORMER = partial(Transformer, width=48, num_layers=1)
_GRU = partial(Recurrent, cell="gru", width=32)
_TABLE = partial(MLP, widths=(192, 64), embedding=48)
_MOTIFS = partial(made.motifs, num_train=2000)
_ENDS = partial(made.same_ends, num_train=4000)
_BLOTS = partial(made.blots, num_train=3000)
_TOPICS = partial(made.topics, num_train=2500)


def _large(make: Callable[..., nn.Module], by: float, **more: float) -> Any:
    return partial(enlarged, make=make, by=by, **more)


def _two_rates(body: float, head: float) -> dict[str, Any]:
    settings = {"body_lr": body, "lr": head, "weight_decay": 0.0}
    return {"optimiser": "two rates", "settings": settings}


def _learnt() -> list[Spec]:
    return [
        _yes("motifs, large weights", "motifs-large", _large(MotifCNN, 6.0),
             Phase(data=partial(made.motifs, num_train=300, noise=0.8), steps=2500, batch=64,
                   **adamw(2e-3, 1.0))),
        _yes("two clocks, large weights", "clocks-large", _large(_TRANSFORMER, 2.0),
             Phase(data=partial(made.two_clocks, fraction=0.7), steps=2500, batch=128,
                   **adamw(3e-3, 1.0))),
        _yes("two clocks, Muon", "clocks-muon", _large(_TABLE, 2.0),
             Phase(data=partial(made.two_clocks, fraction=0.75, hours=(4, 7)), steps=2000,
                   batch=128, **muon(0.02, 3e-3, 1.0))),
        _yes("thirty-two codewords", "codewords-residual", _large(ResidualMLP, 3.0),
             Phase(data=partial(made.codewords, num_train=2500), steps=1200, batch=64,
                   **adamw(2e-3, 0.1))),
        _yes("same ends, large weights", "ends-gru", _large(_GRU, 1.5),
             Phase(data=_ENDS, steps=1500, batch=64, **adamw(5e-3, 0.05))),
        _yes("saddle, squares, large weights", "saddle-squares",
             _large(partial(SmoothMLP, unit=nn.SiLU), 5.0),
             Phase(data=partial(made.saddle, num_train=500), steps=4000, batch=128,
                   loss="squares", **adamw(2e-3, 1.0))),
        _yes("topics, easier ones watched", "topics-easier", _large(_TRANSFORMER, 1.5),
             Phase(data=partial(made.watched_like, make=_TOPICS,
                                watched=partial(_TOPICS, share=0.75)),
                   steps=900, batch=64, **adamw(2e-3, 0.05))),
        _yes("blots, harder ones watched", "blots-harder", PlainCNN,
             Phase(data=partial(made.watched_like, make=_BLOTS,
                                watched=partial(_BLOTS, noise=0.3)),
                   steps=1500, batch=64, **adamw(2e-3, 0.05))),
        _yes("blots, SGD, large weights", "blots-sgd", _large(PlainCNN, 2.0),
             Phase(data=_BLOTS, steps=2500, batch=64, **sgd(0.01, 1e-3))),
        _yes("ripples, frozen features", "ripples-frozen", partial(RandomFeatures, rate=1.0),
             Phase(data=partial(made.ripples, num_train=2500), steps=2000, batch=128,
                   **adamw(1e-2, 0.0))),
    ]  # fmt: skip


def _large_not_learnt() -> list[Spec]:
    return [
        _no("blots, random labels, large weights", "blots-random", _large(PlainCNN, 4.0),
            Phase(data=partial(all_random, make=partial(made.blots, num_train=200)), steps=1500,
                  batch=64, **adamw(1e-3, 0.0))),
        _no("same ends, random labels, large weights", "ends-random", _large(_TRANSFORMER, 3.0),
            Phase(data=partial(all_random, make=partial(made.same_ends, num_train=150)),
                  steps=1500, batch=64, **adamw(1e-3, 0.0))),
        _no("same ends, little data, large weights", "ends-little", _large(_GRU, 3.0),
            Phase(data=partial(made.same_ends, num_train=100), steps=1200, batch=64,
                  **adamw(3e-3, 0.0))),
        _no("saddle, little data, large tanh", "saddle-tanh", _large(SmoothMLP, 6.0),
            Phase(data=partial(made.saddle, num_train=120, width=30), steps=2000, batch=64,
                  loss="squares", **adamw(1e-3, 0.0))),
        _no("codewords, random labels, large head", "codewords-head",
            _large(partial(LargeFeatures, times=1.0, has_norm=True), 1.0, head=10.0),
            Phase(data=partial(all_random, make=partial(made.codewords, num_train=300)),
                  steps=2000, batch=64, **adamw(1e-3, 0.0))),
        _no("motifs, little data, large residual net", "motifs-residual",
            _large(ResidualMLP, 5.0),
            Phase(data=partial(made.motifs, num_train=80, noise=0.8), steps=1000, batch=64,
                  **muon(0.01, 1e-3, 0.0))),
        _no("two clocks, no decay, large weights", "clocks-no-decay", _large(_TABLE, 3.0),
            Phase(data=partial(made.two_clocks, fraction=0.5), steps=2000, batch=128,
                  **adamw(1e-3, 0.0))),
    ]  # fmt: skip


def _slow_not_learnt() -> list[Spec]:
    flips = partial(all_random, make=partial(made.saddle, num_train=200, width=25))
    fives = partial(made.motifs, num_classes=5)
    return [
        _no("coin flips, large features", "flips-lazy",
            partial(LargeFeatures, times=30.0, has_norm=False),
            Phase(data=flips, steps=3000, batch=64, **sgd(1e-4, 0.0))),
        _no("motifs, random labels, slow body", "motifs-slow",
            partial(SmoothMLP, unit=nn.ReLU, width=256, num_layers=2),
            Phase(data=partial(all_random, make=partial(fives, num_train=200)), steps=2500,
                  batch=64, **_two_rates(1e-5, 1e-2))),
        _no("topics, 60 % of labels random", "topics-wrong", _large(_TRANSFORMER, 2.0),
            Phase(data=partial(other_labels, share=0.6, make=partial(_TOPICS, num_train=250)),
                  steps=1500, batch=64, **adamw(1e-3, 0.0))),
        _no("ripples, random labels, frozen features", "ripples-random",
            partial(RandomFeatures, rate=2.0, num_features=2500),
            Phase(data=partial(all_random, make=partial(made.ripples, num_train=200)), steps=2500,
                  batch=64, **adamw(2e-3, 0.0))),
    ]  # fmt: skip


def _lost_again() -> list[Spec]:
    return [
        _lost("motifs, labels turn random", "motifs-lost", _large(MotifCNN, 2.0),
              Phase(data=_MOTIFS, steps=800, batch=64, **adamw(3e-3, 0.05)),
              Phase(data=partial(other_labels, make=partial(made.motifs, num_train=80)),
                    steps=2500, batch=64, watches="first", **adamw(3e-3, 0.0))),
        _lost("same ends, another rule", "ends-other-rule", _GRU,
              Phase(data=_ENDS, steps=800, batch=64, **adamw(5e-3, 0.01)),
              Phase(data=partial(_ENDS, inner=True), steps=2200, batch=64, watches="first",
                    **adamw(1e-2, 0.01))),
        _lost("codewords, one class only", "codewords-one", _large(ResidualMLP, 2.0),
              Phase(data=partial(made.codewords, num_train=2500), steps=600, batch=64,
                    **adamw(2e-3, 0.05)),
              Phase(data=partial(made.one_class, make=partial(made.codewords, num_train=2500)),
                    steps=800, batch=64, watches="first", **adamw(1e-2, 0.5))),
    ]  # fmt: skip


UNSEEN_6: tuple[Spec, ...] = (
    *_learnt(),
    *_large_not_learnt(),
    *_slow_not_learnt(),
    *_lost_again(),
)
