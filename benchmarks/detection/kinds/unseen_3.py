"""The kinds that tested the second and the third rule: first run after these were frozen.

Tasks, networks, losses and one optimiser that no kind before had. Recipes were tuned by accuracy
alone, so that a run does what it is here for; no statistic of theirs was looked at before.
"""

from functools import partial

from benchmarks.detection.kinds import data_3 as made
from benchmarks.detection.kinds.data_sets import with_random_labels
from benchmarks.detection.kinds.networks import MLP, Transformer
from benchmarks.detection.kinds.networks_3 import (
    DepthwiseCNN,
    Recurrent,
    ResidualMLP,
    SetTransformer,
    TanhMLP,
    TextCNN,
    VisionTransformer,
)
from benchmarks.detection.kinds.recipes import adamw, ivon, muon, rmsprop, sgd, spec
from benchmarks.detection.training import Phase, Spec

_make = partial(spec, "unseen by rule 3")
_yes, _no, _lost = (partial(_make, fate) for fate in ("generalises", "does not", "loses it"))
_between, _blind = partial(_make, "in between"), partial(_make, "blind spot")
_LSTM, _GRU = partial(Recurrent, cell="lstm"), partial(Recurrent, cell="gru")
_AFFINE_MLP = partial(MLP, widths=(192, 64), embedding=48)


def _random(make: partial, seed: int = 0, **settings: int) -> partial:
    """A phase's data with labels that mean nothing."""
    return partial(_randomised, make=partial(make, **settings), first=seed)


def _randomised(seed: int, make: partial, first: int) -> made.Data:
    return with_random_labels(make(seed + first), seed + first)


def _tables() -> list[Spec]:
    affine = partial(made.affine_group, prime=7)
    return [
        _yes("affine group", "affine-7", _AFFINE_MLP,
             Phase(data=partial(affine, fraction=0.75), steps=4500, batch=256, **adamw(3e-3))),
        _no("affine group, little data", "affine-7-little", _AFFINE_MLP,
            Phase(data=partial(affine, fraction=0.2), steps=3000, batch=256, **adamw())),
        _no("affine group, random labels", "affine-7-random", partial(ResidualMLP, width=128),
            Phase(data=partial(affine, fraction=0.6, random_labels=True), steps=2000, batch=256,
                  loss="smoothed", **adamw(1e-3, 0.1))),
        _lost("affine group, data taken away", "affine-7-ungrok", _AFFINE_MLP,
              Phase(data=partial(affine, fraction=0.85), steps=4500, batch=256, **adamw(3e-3)),
              Phase(data=lambda _: affine(0, fraction=0.12), steps=3000, batch=128,
                    watches="first", **adamw(2e-3, 0.3))),
    ]  # fmt: skip


def _numbers() -> list[Spec]:
    decoys = partial(made.parity_with_decoys, num_bits=25)
    return [
        _yes("parity with decoys", "decoys", partial(ResidualMLP, width=64),
             Phase(data=partial(decoys, num_train=3000), steps=2000, batch=64,
                   **adamw(1e-3, 0.3))),
        _no("parity with decoys, little data", "decoys-little", partial(ResidualMLP, width=64),
            Phase(data=partial(decoys, num_train=90), steps=1500, batch=64, **adamw(1e-3, 0.0))),
        _yes("largest number", "largest-gru", _GRU,
             Phase(data=partial(made.largest, length=6, num_train=4000), steps=1500, batch=64,
                   **adamw(5e-3, 0.01))),
        _no("largest number, little data", "largest-lstm-little", _LSTM,
            Phase(data=partial(made.largest, length=8, num_train=70), steps=1200, batch=64,
                  **adamw(5e-3, 0.0))),
        _yes("rank among numbers", "rank-set", SetTransformer,
             Phase(data=partial(made.rank_of_first, length=5, num_train=5000), steps=1500,
                   batch=64, **adamw(2e-3, 0.05))),
        _no("rank among numbers, random labels", "rank-set-random", SetTransformer,
            Phase(data=_random(made.rank_of_first, length=5, num_train=200), steps=1500, batch=64,
                  **adamw(2e-3, 0.0))),
        _yes("interval", "interval-focal", partial(ResidualMLP, width=48),
             Phase(data=partial(made.interval, num_train=4000), steps=2500, batch=64,
                   loss="focal", **adamw(2e-3, 0.05))),
        _yes("interval, rare classes", "interval-rare", partial(MLP, widths=(96, 48)),
             Phase(data=partial(made.interval, num_train=6000, rare=0.05), steps=4000, batch=128,
                   **adamw(2e-3, 0.05))),
        _no("rare classes at random", "rare-random", partial(ResidualMLP, width=96),
            Phase(data=partial(made.rare_at_random, num_train=1500, majority=0.9), steps=2500,
                  batch=128, **adamw(1e-3, 0.0))),
    ]  # fmt: skip


def _curves() -> list[Spec]:
    cubic = partial(made.polynomial, num_classes=4)
    return [
        _yes("binned polynomial, squares", "cubic-squares", TanhMLP,
             Phase(data=partial(cubic, num_train=6000), steps=4000, batch=128, loss="squares",
                   **adamw(2e-3, 0.01))),
        _no("binned polynomial, random labels", "cubic-random", TanhMLP,
            Phase(data=_random(made.polynomial, num_train=150, num_classes=4), steps=3000,
                  batch=64, loss="squares", **adamw(3e-3, 0.0))),
        _between("binned polynomial, wrong labels", "cubic-wrong", partial(MLP, widths=(256, 64)),
                 Phase(data=partial(cubic, num_train=400, wrong_share=0.3), steps=5000, batch=128,
                       **adamw(2e-3, 0.0))),
        _blind("far out", "cubic-far", partial(MLP, widths=(96, 64)),
               Phase(data=partial(cubic, num_train=6000, far=True), steps=4000, batch=128,
                     **rmsprop(1e-3))),
        _yes("spirals", "spirals", TanhMLP,
             Phase(data=partial(made.spirals, num_train=2000), steps=3000, batch=64,
                   loss="smoothed", **rmsprop(1e-3))),
        _no("spirals, random labels", "spirals-random", partial(MLP, widths=(256, 128)),
            Phase(data=_random(made.spirals, num_train=80), steps=4000, batch=64,
                  **muon(0.02, 2e-3, 0.0))),
        _lost("spirals, labels turn random", "spirals-lost", partial(MLP, widths=(128, 64)),
              Phase(data=partial(made.spirals, num_train=2000), steps=2000, batch=64,
                    **adamw(2e-3, 0.05)),
              Phase(data=_random(made.spirals, 4, num_train=80), steps=6000, batch=64,
                    watches="first", **adamw(4e-3, 0.0))),
    ]  # fmt: skip


def _strings() -> list[Spec]:
    word = partial(made.contains, length=12)
    letters = partial(made.majority_letter, length=9)
    return [
        _yes("string matching", "contains-cnn", TextCNN,
             Phase(data=partial(word, num_train=3000), steps=2000, batch=64, **ivon(1e-4))),
        _no("string matching, random labels", "contains-random",
            partial(Transformer, width=48, num_layers=1),
            Phase(data=_random(made.contains, length=12, num_train=150), steps=1200, batch=64,
                  **adamw(2e-3, 0.0))),
        _yes("majority of letters", "majority-gru", _GRU,
             Phase(data=partial(letters, num_train=3000), steps=1200, batch=64,
                   **adamw(5e-3, 0.01))),
        _no("majority of letters, random labels", "majority-lstm-random", _LSTM,
            Phase(data=_random(made.majority_letter, length=9, num_train=150), steps=1500,
                  batch=64, **adamw(5e-3, 0.0))),
        _lost("majority of letters, labels turn random", "majority-lost", _GRU,
              Phase(data=partial(letters, num_train=3000), steps=800, batch=64,
                    **adamw(5e-3, 0.01)),
              Phase(data=_random(made.majority_letter, 3, length=9, num_train=150), steps=1200,
                    batch=64, watches="first", **adamw(5e-3, 0.0))),
        _no("connected graphs, little data", "connected-little", partial(ResidualMLP, width=128),
            Phase(data=partial(made.connected, num_nodes=9, num_train=100), steps=1500, batch=64,
                  **adamw(1e-3, 0.0))),
        _yes("connected graphs", "connected", partial(ResidualMLP, width=128),
             Phase(data=partial(made.connected, num_nodes=6, num_train=6000), steps=2500,
                   batch=128, **adamw(1e-3, 0.3))),
    ]  # fmt: skip


def _pictures() -> list[Spec]:
    return [
        _yes("gratings", "gratings-vit", VisionTransformer,
             Phase(data=partial(made.gratings, num_train=3000), steps=1500, batch=64,
                   **adamw(2e-3, 0.05))),
        _no("gratings, random labels", "gratings-vit-random", VisionTransformer,
            Phase(data=_random(made.gratings, num_train=200), steps=1500, batch=64,
                  loss="smoothed", **adamw(2e-3, 0.0))),
        _no("gratings, noisy", "gratings-noisy", DepthwiseCNN,
            Phase(data=partial(made.gratings, num_train=2000, watched="noisy"), steps=1500,
                  batch=64, **sgd(0.05, 1e-3))),
        _lost("gratings, tuned on wrong labels", "gratings-lost", DepthwiseCNN,
              Phase(data=partial(made.gratings, num_train=2000), steps=800, batch=64,
                    **adamw(3e-3, 0.05)),
              Phase(data=_random(made.gratings, 5, num_train=100), steps=1500, batch=64,
                    watches="first", **adamw(3e-3, 0.0))),
        _yes("dots", "dots-cnn", DepthwiseCNN,
             Phase(data=partial(made.dots, num_train=3000), steps=2000, batch=64,
                   **adamw(3e-3, 0.05))),
        _no("dots, little data", "dots-mlp-little", partial(MLP, widths=(128, 64)),
            Phase(data=partial(made.dots, num_train=80), steps=1500, batch=64, loss="focal",
                  **sgd(0.05, 0.0))),
        _blind("dots, shortcut", "dots-shortcut", DepthwiseCNN,
               Phase(data=partial(made.dots, num_train=2000, watched="shortcut"), steps=800,
                     batch=64, **adamw(3e-3, 0.05))),
    ]  # fmt: skip


UNSEEN_3: tuple[Spec, ...] = (*_tables(), *_numbers(), *_curves(), *_strings(), *_pictures())
