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

A seen row that is left out takes one of its answers away, which alone would put its prediction
below chance. So watched rows are predicted without one seen row of the same answer, too, on
average over these rows.

Letters: N seen rows, M watched rows, C classes, D columns.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import sqrt

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from epigrok.monitor.inputs import InputColumns, spread
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
        picked = {name: own[spread(len(own), _MOST_ROWS)] for name, own in answers.items()}
        found = self._predictor.agreement(picked)
        return {
            name: replace(measure, predictability=found.get(name, Mean()))
            for name, measure in measured.items()
        }


class _Predictor:
    """Of the answers to all sets whose inputs can be compared with the seen ones."""

    def __init__(self, columns: Mapping[str, InputColumns | None]) -> None:
        kernels = _kernels(columns)
        self._sizes = {name: len(kernel) for name, kernel in kernels.items() if name != SEEN}
        self._inverse_NN: Tensor | None = None
        if kernels:
            inverse_NN = torch.linalg.inv(kernels.pop(SEEN))
            # Single precision is enough from here on, and every look multiplies with these.
            self._inverse_NN = inverse_NN.float()
            self._weight_MN = (torch.cat([inverse_NN[:0], *kernels.values()]) @ inverse_NN).float()

    def agreement(self, answers: Mapping[str, Int[Tensor, " _"]]) -> dict[str, Mean]:
        """κ of each set's answers with their predictions."""
        seen_N = answers[SEEN]
        own_M = torch.cat([seen_N[:0], *(answers[name] for name in self._sizes)])
        has_all = bool((seen_N >= 0).all()) and bool((own_M >= 0).all())
        if self._inverse_NN is None or not has_all:
            return {}
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
        sizes = [len(place_N), *self._sizes.values()]
        pairs = (torch.cat(both).split(sizes)
                 for both in ((place_N, place_M), (predicted_N, predicted_M)))  # fmt: skip
        return {name: _agreement(own, predicted, num_classes)
                for name, own, predicted in zip([SEEN, *self._sizes], *pairs)}  # fmt: skip


def _kernels(columns: Mapping[str, InputColumns | None]) -> dict[str, Float[Tensor, "_ N"]]:
    """Of each set with the seen one; with λ on the diagonal of the seen set's own."""
    seen = columns[SEEN]
    if seen is None or len(seen.numbers) < _FEWEST_ROWS:
        return {}
    distances = {
        name: _squared_distances(own, seen)
        for name, own in columns.items()
        if own is not None and own.is_like(seen)
    }
    is_pair_NN = ~torch.eye(len(seen.numbers), dtype=torch.bool)
    width = float(distances[SEEN][is_pair_NN].median())
    if not width > 0.0:
        return {}
    kernels = {name: (-squared / width).exp() for name, squared in distances.items()}
    kernels[SEEN].diagonal().add_(_RIDGE)
    return {name: kernel for name, kernel in kernels.items() if bool(kernel.isfinite().all())}


def _squared_distances(of: InputColumns, seen: InputColumns) -> Float[Tensor, "M N"]:
    """Between rows: numbers in units of their spread over the seen rows; names equal or not."""
    mean_D = seen.numbers.mean(dim=0)
    spread_D = (seen.numbers - mean_D).square().mean(dim=0).sqrt()
    # Rounding gives a constant column some spread, too.
    varies_D = spread_D > 1e-9 * seen.numbers.abs().amax(dim=0)
    left, right = (((part.numbers - mean_D) / spread_D)[:, varies_D] for part in (of, seen))
    # Two names that differ count as much as two numbers do on average.
    unequal_MN = torch.stack([(row != seen.names).sum(dim=1) for row in of.names])
    return torch.cdist(left, right).square() + 2.0 * unequal_MN


def _agreement(own: Int[Tensor, " M"], predicted: Int[Tensor, " M"], num_classes: int) -> Mean:
    num_rows = len(own)
    counts = [torch.bincount(part, minlength=num_classes) for part in (own, predicted)]
    chance = int(counts[0] @ counts[1]) / num_rows**2
    if chance >= 1.0:
        return Mean()
    observed = int((own == predicted).sum()) / num_rows
    # All right, or all wrong, is not known to be so of other rows.
    variance = max(observed * (1.0 - observed), 1.0 / num_rows)
    return Mean((observed - chance) / (1.0 - chance), sqrt(variance / num_rows) / (1.0 - chance))
