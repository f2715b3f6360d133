"""Which rows are alike: Gaussian kernels of raw inputs and of features, with the seen rows.

Letters: N seen rows, M rows of any set, D columns.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from epigrok.monitor.measuring import SEEN
from epigrok.monitor.sets.input_columns import InputColumns

_RIDGE = 0.1
"""λ, the diagonal of K being one."""
_FEWEST_ROWS = 8
"""Of the seen set; with so few τ is unreadable anyway."""


def kernels_of(
    distances: dict[str, Float[Tensor, "_ N"]], relative_width: float
) -> dict[str, Float[Tensor, "_ N"]]:
    """From squared distances, with λ on the diagonal of the seen set's own; none of few rows."""
    if SEEN not in distances or len(distances[SEEN]) < _FEWEST_ROWS:
        return {}
    is_pair_NN = ~torch.eye(len(distances[SEEN]), dtype=torch.bool, device="cpu")
    width = relative_width * float(distances[SEEN][is_pair_NN].median())
    if not width > 0.0:
        return {}
    kernels = {name: (-squared / width).exp() for name, squared in distances.items()}
    kernels[SEEN].diagonal().add_(_RIDGE)
    return {name: kernel for name, kernel in kernels.items() if bool(kernel.isfinite().all())}


def input_distances(of: InputColumns, seen: InputColumns) -> Float[Tensor, "M N"]:
    """Squared: numbers in units of their spread over the seen rows, names equal or not."""
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
