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
        self._predictors: dict[str, _Predictor | None] | None = None

    def added_to(self, measured: Mapping[str, SetMeasure]) -> dict[str, SetMeasure]:
        """What was measured, with Cohen's κ between the answers to each set and the predicted ones.

        NaN where an input has several answers, or where inputs cannot be compared.
        """
        if self._predictors is None:
            # Not at the start: which rows are read is known once the model was called.
            columns = {name: rows.columns(_MOST_ROWS, _MOST_COLUMNS)
                       for name, rows in self._rows.items()}  # fmt: skip
            self._predictors = {name: _predictor(columns[SEEN], found)
                                for name, found in columns.items()}  # fmt: skip

        def answers(name: str) -> Tensor:
            given_N = torch.tensor(measured[name].answers)
            return given_N[spread(len(given_N), _MOST_ROWS)]

        def found(name: str, predictor: _Predictor | None) -> Mean:
            if predictor is None:
                return Mean()
            return predictor.agreement(answers(SEEN), None if name == SEEN else answers(name))

        return {
            name: replace(measured[name], predictability=found(name, predictor))
            for name, predictor in self._predictors.items()
        }


class _Predictor:
    """Of the answers to one set."""

    def __init__(self, inverse_NN: Float[Tensor, "N N"], cross_MN: Float[Tensor, "M N"]) -> None:
        self._inverse_NN = inverse_NN
        self._weight_MN = cross_MN @ inverse_NN

    def agreement(self, seen_N: Int[Tensor, " N"], watched_M: Int[Tensor, " M"] | None) -> Mean:
        """κ of the watched answers with their predictions; of the seen ones if there are none."""
        own = seen_N if watched_M is None else watched_M
        if min(int(seen_N.min()), int(own.min())) < 0:
            return Mean()
        # Answers that no seen row gives cannot be predicted: they share one more class.
        known_C, place_N = seen_N.unique(return_inverse=True)
        is_known = torch.isin(own, known_C)
        own = torch.searchsorted(known_C, own).where(is_known, len(known_C))
        given_NC = one_hot(place_N, len(known_C)).double()
        given_NC -= given_NC.mean(dim=0)
        coefficients_NC = self._inverse_NN @ given_NC
        left_out_NC = coefficients_NC / self._inverse_NN.diagonal()[:, None]
        if watched_M is None:
            return _agreement(own, (given_NC - left_out_NC).argmax(dim=1))
        is_same_MN = (place_N == own[:, None]).double()
        is_same_MN /= is_same_MN.sum(dim=1, keepdim=True).clamp_min(1.0)
        taken_away_MC = (self._weight_MN * is_same_MN) @ left_out_NC
        return _agreement(own, (self._weight_MN @ given_NC - taken_away_MC).argmax(dim=1))


def _predictor(seen: InputColumns | None, own: InputColumns | None) -> _Predictor | None:
    if seen is None or own is None or not seen.is_like(own) or len(seen.numbers) < _FEWEST_ROWS:
        return None
    among_NN, across_MN = _squared_distances(seen, seen), _squared_distances(own, seen)
    is_pair_NN = ~torch.eye(len(among_NN), dtype=torch.bool)
    width = float(among_NN[is_pair_NN].median())
    if not (width > 0.0 and bool(across_MN.isfinite().all())):
        return None
    kernel_NN, cross_MN = (-among_NN / width).exp(), (-across_MN / width).exp()
    kernel_NN.diagonal().add_(_RIDGE)
    return _Predictor(torch.linalg.inv(kernel_NN), cross_MN)


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


def _agreement(own: Int[Tensor, " M"], predicted: Int[Tensor, " M"]) -> Mean:
    num_rows, num_classes = len(own), int(max(own.max(), predicted.max())) + 1
    shares = [torch.bincount(part, minlength=num_classes).double() / num_rows
              for part in (own, predicted)]  # fmt: skip
    chance = float(shares[0] @ shares[1])
    if chance >= 1.0:
        return Mean()
    observed = float((own == predicted).double().mean())
    # All right, or all wrong, is not known to be so of other rows.
    variance = max(observed * (1.0 - observed), 1.0 / num_rows)
    return Mean((observed - chance) / (1.0 - chance), sqrt(variance / num_rows) / (1.0 - chance))
