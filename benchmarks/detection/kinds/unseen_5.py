"""The kinds that tested the fifth rule: first run after it was frozen.

Its new clause asks whether seen answers follow from each other. So these are kinds on which it
could err: smooth networks that learn coin flips by heart, and rules that are easy or hard to
predict from inputs, watched where they are easier, or learnt from few, many or doubled rows.
Recipes were tuned by accuracy alone; no statistic of theirs was looked at before.
"""

from functools import partial

from torch import nn

from benchmarks.detection.kinds import data_5 as made
from benchmarks.detection.kinds.data_sets import all_random, other_labels, with_wrong_labels
from benchmarks.detection.kinds.networks import MLP, Transformer
from benchmarks.detection.kinds.networks_3 import Recurrent
from benchmarks.detection.kinds.networks_5 import Linear, PooledCNN, SmoothMLP, Square, Wave
from benchmarks.detection.kinds.recipes import adamw, ivon, muon, sgd, spec
from benchmarks.detection.training import Phase, Spec

_make = partial(spec, "unseen by rule 5")
_yes, _no, _lost, _between = (
    partial(_make, fate) for fate in ("generalises", "does not", "loses it", "in between")
)
_TRANSFORMER = partial(Transformer, width=48, num_layers=1)
_GRU = partial(Recurrent, cell="gru")
_ELU, _SOFTPLUS = partial(SmoothMLP, unit=nn.ELU), partial(SmoothMLP, unit=nn.Softplus)
_DEEP_TANH = partial(SmoothMLP, num_layers=4)
_CLOUDS = partial(made.clouds, num_train=1500)
_FLIPPED_CLOUDS = partial(all_random, make=partial(made.clouds, num_train=150, width=60))


def _with_wrong(seed: int, share: float, **settings: int) -> made.Data:
    return with_wrong_labels(made.linear_rule(seed, **settings), share, seed)


def _learnt() -> list[Spec]:
    return [
        _yes("weather", "weather-elu", _ELU,
             Phase(data=partial(made.weather, num_train=4000), steps=1500, batch=64,
                   **adamw(2e-3, 0.05))),
        _yes("decision tree", "tree-mlp", partial(MLP, widths=(128, 64)),
             Phase(data=partial(made.tree, num_train=6000), steps=2500, batch=64,
                   **muon(0.01, 2e-3, 0.05))),
        _yes("clock", "clock-cnn", PooledCNN,
             Phase(data=partial(made.clock, num_train=2500), steps=900, batch=64,
                   **adamw(3e-3, 0.05))),
        _yes("comparison", "comparison", _TRANSFORMER,
             Phase(data=partial(made.comparison, num_train=6000), steps=1500, batch=64,
                   **adamw(2e-3, 0.05))),
        _yes("doubled letters", "doubled-gru", _GRU,
             Phase(data=partial(made.doubled, num_train=6000), steps=1800, batch=64,
                   **adamw(5e-3, 0.01))),
        _yes("linear rule", "plane-linear", Linear,
             Phase(data=partial(made.linear_rule, num_train=4000), steps=1500, batch=256,
                   **adamw(2e-2, 0.0))),
        _yes("linear rule, few on one side", "plane-rare", SmoothMLP,
             Phase(data=partial(made.linear_rule, num_train=5000, share=0.15), steps=1500,
                   batch=128, **adamw(2e-3, 0.01))),
        _yes("two clouds, few rows", "clouds-few", Linear,
             Phase(data=partial(made.clouds, num_train=80), steps=600, batch=64,
                   **adamw(1e-2, 0.01))),
        _yes("clouds, watched in the middle", "clouds-core", SmoothMLP,
             Phase(data=partial(made.core_watched,
                                make=partial(_CLOUDS, num_classes=5, distance=5.0)),
                   steps=800, batch=64, **ivon())),
        _yes("clouds, doubled rows", "clouds-jittered", _SOFTPLUS,
             Phase(data=partial(made.jittered, make=partial(_CLOUDS, num_classes=4, distance=5.0)),
                   steps=800, batch=64, **adamw(2e-3, 0.01))),
    ]  # fmt: skip


def _flips() -> list[Spec]:
    pictures = partial(all_random, make=partial(made.clock, num_train=120, num_sectors=2))
    return [
        _no("coin flips, linear, three classes", "flips-linear-3", Linear,
            Phase(data=partial(all_random,
                               make=partial(made.clouds, num_train=150, width=80, num_classes=3)),
                  steps=1500, batch=64, **adamw(1e-2, 0.0))),
        _no("coin flips, linear, tokens", "flips-linear-tokens", Linear,
            Phase(data=partial(all_random, make=partial(made.doubled, num_train=90)), steps=1500,
                  batch=64, **adamw(1e-2, 0.0))),
        _no("coin flips, deep tanh", "flips-tanh", _DEEP_TANH,
            Phase(data=_FLIPPED_CLOUDS, steps=1500, batch=150, **adamw(1e-3, 0.01))),
        _no("coin flips, exponential units", "flips-elu", _ELU,
            Phase(data=_FLIPPED_CLOUDS, steps=1500, batch=32, **sgd(0.03, 1e-4))),
        _no("coin flips, soft units, pictures", "flips-softplus", _SOFTPLUS,
            Phase(data=pictures, steps=1500, batch=64, **adamw(2e-3, 0.0))),
        _no("coin flips, units that square", "flips-square",
            partial(SmoothMLP, unit=Square, num_layers=1),
            Phase(data=_FLIPPED_CLOUDS, steps=1500, batch=64, **adamw(3e-3, 0.0))),
        _no("coin flips, waves", "flips-wave", partial(SmoothMLP, unit=Wave, num_layers=2),
            Phase(data=_FLIPPED_CLOUDS, steps=1500, batch=64, **adamw(2e-3, 0.0))),
        _no("coin flips, smooth convolutions", "flips-cnn", PooledCNN,
            Phase(data=pictures, steps=1500, batch=64, **adamw(3e-3, 0.0))),
        _no("coin flips, recurrent", "flips-gru", _GRU,
            Phase(data=partial(all_random, make=partial(made.doubled, num_train=100)), steps=1200,
                  batch=64, **adamw(5e-3, 0.0))),
    ]  # fmt: skip


def _others() -> list[Spec]:
    return [
        _no("comparison, little data", "comparison-little", _TRANSFORMER,
            Phase(data=partial(made.comparison, num_train=80), steps=1500, batch=64,
                  **adamw(2e-3, 0.0))),
        _no("doubled letters, little data", "doubled-little", _TRANSFORMER,
            Phase(data=partial(made.doubled, num_train=150), steps=1500, batch=64,
                  **adamw(2e-3, 0.0))),
        _between("linear rule, a third wrong", "plane-wrong", Linear,
                 Phase(data=partial(_with_wrong, num_train=150, width=120, share=0.6), steps=1500,
                       batch=150, **adamw(1e-2, 0.0))),
        _between("decision tree, little data", "tree-little", _DEEP_TANH,
                 Phase(data=partial(made.tree, num_train=150), steps=2000, batch=64,
                       **adamw(2e-3, 0.0))),
        _lost("clouds, labels turn random, smooth", "clouds-lost", _ELU,
              Phase(data=_CLOUDS, steps=500, batch=64, **adamw(2e-3, 0.01)),
              Phase(data=partial(other_labels,
                                 make=partial(made.clouds, num_train=100, width=20)),
                    steps=2500, batch=100, watches="first", **adamw(3e-3, 0.0))),
    ]  # fmt: skip


UNSEEN_5: tuple[Spec, ...] = (*_learnt(), *_flips(), *_others())
