r"""How well answers follow from the answers to the seen inputs, without a look at the network.

Noise breaks a network that is rough between the rows it learnt by heart. One that is smooth there
is as firm between rows as on them, and noise cannot tell it from a rule. This can: its answers
between the rows are filled in from the rows, so the rows predict them; but no row predicts another.
Where one rule answers both sets, both are predicted equally well, or equally badly.

The predictor is ridge regression of the answers on a Gaussian kernel over the raw inputs, with
$\alpha = (K + \lambda I)^{-1} Y$ and a column of Y for each class. It predicts

- watched rows by $K_* \alpha$;
- each seen row from the others by $Y_n - \alpha_n / [(K + \lambda I)^{-1}]_{nn}$, the closed form
  of leaving that row out (Allen's PRESS).

Copies of a row would be predicted by each other, whatever they were learnt from. So a seen row
counts once, and a watched one that is a copy of it does not count.

A seen row that is left out takes one of its answers away, which alone would put its prediction
below chance. So watched rows are predicted without one seen row of the same answer, too, on
average over these rows. A rule is predicted less well, corrected for chance, where one answer is
rare; so seen rows are weighed until their answers are as frequent as those of the watched set.

Letters: N seen rows, M watched rows, C classes, D columns.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import sqrt

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from epigrok.monitor.inputs import InputColumns, evenly_spaced
from epigrok.monitor.measuring import SEEN, Mean, SetMeasure
from epigrok.monitor.set_rows import SetRows

_RIDGE = 0.1
"""λ, the diagonal of K being one."""
_FEWEST_ROWS = 8
"""Of the seen set; with so few τ is unreadable anyway."""
_MOST_ROWS, _MOST_COLUMNS = 1024, 4096
"""Of more, so many are taken, evenly spread: a matrix of all rows might not fit into memory, and
distances hardly change with more columns."""


class Predictability:
    """Predicts the answers to the seen and the watched inputs of a monitor."""

    def __init__(self, rows: Mapping[str, SetRows]) -> None:
        self._rows = rows
        self._predictor: _Predictor | None = None

    def added_to(self, measured: Mapping[str, SetMeasure]) -> dict[str, SetMeasure]:
        """What was measured, with Cohen's κ between the answers to each set and the predicted ones.

        NaN where an input has several answers, or where inputs cannot be compared.
        """
        if self._predictor is None:
            # Not at the start: which rows are read is known once the model was called.
            columns = {name: rows.columns(_MOST_ROWS, _MOST_COLUMNS)
                       for name, rows in self._rows.items()}  # fmt: skip
            self._predictor = _Predictor(columns)
        answers = {name: torch.tensor(found.answers) for name, found in measured.items()}
        picked = {name: own[evenly_spaced(len(own), _MOST_ROWS)] for name, own in answers.items()}
        return {
            name: replace(measured[name], predictability=own, seen_predictability=seen)
            for name, (own, seen) in self._predictor.agreement(picked).items()
        }


class _Predictor:
    """Of the answers to all sets whose inputs can be compared with the seen ones."""

    def __init__(self, columns: Mapping[str, InputColumns | None]) -> None:
        seen = columns[SEEN]
        alike = {name: own for name, own in columns.items()
                 if own is not None and seen is not None and own.is_like(seen)}  # fmt: skip
        self._rows = {name: own.new_rows(seen if name != SEEN else None)
                      for name, own in alike.items()}  # fmt: skip
        new = {name: own.rows(self._rows[name]) for name, own in alike.items()}
        kernels = _kernels({name: own for name, own in new.items() if own.digests})
        self._sizes = {name: len(kernel) for name, kernel in kernels.items() if name != SEEN}
        self._inverse_NN: Tensor | None = None
        if kernels:
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


def _kernels(columns: Mapping[str, InputColumns]) -> dict[str, Float[Tensor, "_ N"]]:
    """Of each set with the seen one; with λ on the diagonal of the seen set's own."""
    seen = columns.get(SEEN)
    if seen is None or len(seen.numbers) < _FEWEST_ROWS:
        return {}
    distances = {name: _squared_distances(own, seen) for name, own in columns.items()}
    is_pair_NN = ~torch.eye(len(seen.numbers), dtype=torch.bool)
    width = float(distances[SEEN][is_pair_NN].median())
    if not width > 0.0:
        return {}
    kernels = {name: (-squared / width).exp() for name, squared in distances.items()}
    kernels[SEEN].diagonal().add_(_RIDGE)
    return {name: kernel for name, kernel in kernels.items() if bool(kernel.isfinite().all())}


def _squared_distances(of: InputColumns, seen: InputColumns) -> Float[Tensor, "M N"]:
    """Between rows: numbers in units of their spread over the seen rows; names equal or not."""
    known = seen.numbers.where(seen.numbers.isfinite(), torch.nan)
    mean_D = known.nanmean(dim=0)
    spread_D = (known - mean_D).square().nanmean(dim=0).sqrt()
    # Rounding gives a constant column some spread, too. What is missing is taken for the mean.
    varies_D = spread_D > 1e-9 * known.nan_to_num().abs().amax(dim=0)
    left, right = (
        ((part.numbers - mean_D) / spread_D)[:, varies_D].nan_to_num(0.0, 0.0, 0.0)
        for part in (of, seen)
    )
    # Two names that differ count as much as two numbers do on average.
    unequal_MN = torch.stack([(row != seen.names).sum(dim=1) for row in of.names])
    return torch.cdist(left, right).square() + 2.0 * unequal_MN


def _agreement(
    own: Int[Tensor, " M"],
    predicted: Int[Tensor, " M"],
    num_classes: int,
    weight: Float[Tensor, " M"] | None = None,
) -> Mean:
    """Cohen's κ; rows may count more or less."""
    weight = torch.ones(len(own)).double() if weight is None else weight
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
