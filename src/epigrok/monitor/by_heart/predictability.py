r"""How well answers follow from the answers to the seen inputs, without a look at the network.

Noise breaks a network that is rough between the rows it learnt by heart. One that is smooth there
is as firm between rows as on them, and noise cannot tell it from a rule. This can: its answers
between the rows are filled in from the rows, so the rows predict them; but no row predicts another.
Where one rule answers both sets, both are predicted equally well, or equally badly.

The predictor is ridge regression of the answers on a Gaussian kernel,
with $\alpha = (K + \lambda I)^{-1} Y$ and a column of Y for each class. It predicts

- watched rows by $K_* \alpha$;
- each seen row from the others by $Y_n - \alpha_n / [(K + \lambda I)^{-1}]_{nn}$, the closed form
  of leaving that row out (Allen's PRESS).

There are two kernels: of the raw inputs, and of the features that the head got when the monitor was
made (`first_features.py`). Smooth networks are told by the first, transformers, for which raw
tokens say little, by the second. The one that says "by heart" counts; where both do or neither
does, the one that tells a watched set further apart from the seen one.

Copies of a row would be predicted by each other, whatever they were learnt from. So a seen row
counts once, and a watched one that is a copy of it does not count.

A seen row that is left out takes one of its answers away, which alone would put its prediction
below chance. So watched rows are predicted without one seen row of the same answer, too, on
average over these rows. A rule is predicted less well, corrected for chance, where one answer is
rare; so seen rows are weighed until their answers are as frequent as those of the watched set.

Letters: N seen rows, M watched rows, C classes.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from math import hypot, inf, isfinite, isnan, sqrt
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from epigrok.errors import UserError
from epigrok.monitor.by_heart.first_features import (
    FirstFeatures,
    features_to_json,
    first_features,
)
from epigrok.monitor.by_heart.kernels import input_distances, kernels_of
from epigrok.monitor.measuring import SEEN, Mean, SetMeasure
from epigrok.monitor.sets.input_columns import InputColumns
from epigrok.monitor.sets.inputs import evenly_spaced
from epigrok.monitor.sets.set_rows import SetRows
from epigrok.posteriors.head import HeadInputs

_INPUT_WIDTH, _FEATURE_WIDTH = 1.0, 0.25
"""Of a kernel, over the median squared distance. The second was chosen on the transformers of
`benchmarks.detection.coin_flips`: with a wider one they are told less surely."""
_MOST_ROWS, _MOST_COLUMNS = 1024, 4096
"""Of more, so many are taken, evenly spread: a matrix of all rows might not fit into memory, and
distances hardly change with more columns."""


class Predictability:
    """Predicts the answers to the seen and the watched inputs of a monitor."""

    def __init__(
        self, rows: Mapping[str, SetRows], inputs: Mapping[str, HeadInputs], share: float
    ) -> None:
        """The sets after a pass, and what their head got then, where there is a head.

        Args:
            rows: Of each set.
            inputs: Of each set that has a head.
            share: Of the watched answers' predictability that the seen ones lack if learnt by
                heart.
        """
        self._share = share
        self._columns = {name: own.columns(_MOST_ROWS, _MOST_COLUMNS) for name, own in rows.items()}
        known = {n: found for n, found in inputs.items() if self._columns[n] is not None}
        self._features = first_features(known) if SEEN in known else {}
        self._predictors = _predictors(self._columns, self._features)

    def going_on(self, features: FirstFeatures) -> "Predictability":
        """The same with the first features of an earlier process."""
        lengths, own_lengths = (
            {name: len(of_set) for name, of_set in found.items()}
            for found in (features, self._features)
        )
        widths = {of_set.shape[1] for of_set in features.values()}
        if lengths != own_lengths or len(widths) > 1:
            raise UserError("the saved monitor is damaged: its features are not those of its rows")
        other = copy(self)
        other._features, other._predictors = features, _predictors(self._columns, features)
        return other

    def to_json(self) -> dict[str, Any]:
        """The first features, for `features_from_json`: a later process could not find them out."""
        return features_to_json(self._features)

    def added_to(self, measured: Mapping[str, SetMeasure]) -> dict[str, SetMeasure]:
        """What was measured, with Cohen's κ between the answers to each set and the predicted ones.

        NaN where an input has several answers, or where inputs cannot be compared.
        """
        answers = {
            name: torch.tensor(found.answers, dtype=torch.long, device="cpu")
            for name, found in measured.items()
        }
        picked = {name: own[evenly_spaced(len(own), _MOST_ROWS)] for name, own in answers.items()}
        found = [predictor.agreement(picked) for predictor in self._predictors]
        return {name: _with_clearest(of_set, [kappas[name] for kappas in found], self._share)
                for name, of_set in measured.items()}  # fmt: skip


def _with_clearest(
    measured: SetMeasure, found: list[tuple[Mean, Mean]], share: float
) -> SetMeasure:
    """With the two κ that say "by heart", or else those that differ most surely."""

    def clearness(kappas: tuple[Mean, Mean]) -> tuple[bool, float]:
        own, seen = kappas
        gap = (own.value - seen.value) / hypot(own.standard_error, seen.standard_error)
        return seen.value < share * own.value, gap if isfinite(gap) else -inf

    known = [kappas for kappas in found if not isnan(kappas[0].value)]
    own, seen = max(known, key=clearness, default=(Mean(), Mean()))
    return replace(measured, predictability=own, seen_predictability=seen)


def _predictors(
    columns: Mapping[str, InputColumns | None], features: FirstFeatures
) -> list["_Predictor"]:
    """From the raw inputs and from the first features, as far as these are known."""
    known = {name: own for name, own in columns.items() if own is not None}
    if SEEN not in known:
        return []
    seen = known[SEEN]
    rows = {name: own.new_rows(seen if name != SEEN else None) for name, own in known.items()}
    rows = {name: chosen for name, chosen in rows.items() if len(chosen)}
    of_inputs = {
        name: input_distances(known[name].rows(chosen), seen.rows(rows[SEEN]))
        for name, chosen in rows.items()
        if known[name].is_like(seen)
    }
    picked = {name: own[evenly_spaced(len(own), _MOST_ROWS)] for name, own in features.items()}
    of_features = {
        name: torch.cdist(picked[name][chosen], picked[SEEN][rows[SEEN]]).square()
        for name, chosen in rows.items()
        if name in picked
    }
    return [
        _Predictor(kernels_of(distances, width), rows)
        for distances, width in ((of_inputs, _INPUT_WIDTH), (of_features, _FEATURE_WIDTH))
    ]


class _Predictor:
    """Of the answers to all sets, through one kernel of each with the seen one."""

    def __init__(
        self, kernels: dict[str, Float[Tensor, "_ N"]], rows: Mapping[str, Int[Tensor, " _"]]
    ) -> None:
        """The kernels, that of the seen set with λ on its diagonal, and which rows they are of."""
        self._rows = rows
        self._sizes = {name: len(kernel) for name, kernel in kernels.items() if name != SEEN}
        self._inverse_NN: Tensor | None = None
        if SEEN in kernels:
            inverse_NN = torch.linalg.inv(kernels.pop(SEEN))
            # Single precision is enough from here on, and every look multiplies with these.
            self._inverse_NN = inverse_NN.float()
            self._weight_MN = (torch.cat([inverse_NN[:0], *kernels.values()]) @ inverse_NN).float()

    def agreement(self, answers: Mapping[str, Int[Tensor, " _"]]) -> dict[str, tuple[Mean, Mean]]:
        """κ of each set's answers with their predictions, and that of the seen ones beside it."""
        unknown = dict.fromkeys(answers, (Mean(), Mean()))
        if self._inverse_NN is None:
            return unknown
        seen_N = answers[SEEN][self._rows[SEEN]]
        own_M = torch.cat([seen_N[:0], *(answers[name][self._rows[name]] for name in self._sizes)])
        if bool((seen_N < 0).any()) or bool((own_M < 0).any()):
            return unknown
        known_C, place_N, count_C = seen_N.unique(return_inverse=True, return_counts=True)
        num_classes = len(known_C) + 1
        # Answers that no seen row gives cannot be predicted: they share one more class.
        place_M = torch.searchsorted(known_C, own_M).clamp_max(len(known_C) - 1)
        place_M = place_M.where(known_C[place_M] == own_M, len(known_C))
        given_NC = one_hot(place_N, num_classes).float()
        given_NC -= given_NC.mean(dim=0)
        left_out_NC = self._inverse_NN @ given_NC / self._inverse_NN.diagonal()[:, None]
        predicted_N = (given_NC - left_out_NC).argmax(dim=1)
        is_same_MN = (place_N == place_M[:, None]).float()
        taken_away_MC = (self._weight_MN * is_same_MN) @ left_out_NC
        taken_away_MC /= torch.cat([count_C, count_C.new_ones(1)])[place_M, None]
        predicted_M = (self._weight_MN @ given_NC - taken_away_MC).argmax(dim=1)

        def of_set(own: Tensor, predicted: Tensor) -> tuple[Mean, Mean]:
            share_C = torch.bincount(own, minlength=num_classes)[: len(known_C)] / count_C
            seen = _agreement(place_N, predicted_N, num_classes, share_C[place_N].double())
            return _agreement(own, predicted, num_classes), seen

        sizes = list(self._sizes.values())
        found = map(of_set, place_M.split(sizes), predicted_M.split(sizes))
        seen = _agreement(place_N, predicted_N, num_classes)
        return {**unknown, SEEN: (seen, Mean()), **dict(zip(self._sizes, found))}


def _agreement(
    own: Int[Tensor, " M"],
    predicted: Int[Tensor, " M"],
    num_classes: int,
    weight: Float[Tensor, " M"] | None = None,
) -> Mean:
    """Cohen's κ; rows may count more or less."""
    weight = torch.ones_like(own, dtype=torch.double) if weight is None else weight
    total = float(weight.sum())
    if not total > 0.0:
        return Mean()
    shares = [torch.bincount(part, weight / total, num_classes) for part in (own, predicted)]
    chance = float(shares[0] @ shares[1])
    if chance > 1.0 - 1e-9:
        return Mean()
    observed = float(weight[own == predicted].sum()) / total
    num_rows = total**2 / float(weight.square().sum())
    # All right, or all wrong, is not known to be so of other rows.
    variance = max(observed * (1.0 - observed), 1.0 / num_rows)
    return Mean((observed - chance) / (1.0 - chance), sqrt(variance / num_rows) / (1.0 - chance))
