"""Expected calibration error of the most likely class.

Letters: N predictions, T groups of predictions kept apart, M bins.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from epigrok.uncertainty.index_sums import sums_by_index

NUM_BINS = 15
"""Equal-width bins of [0, 1], closed on the left; the last one holds confidence 1.0 too."""


def reliability_counts(
    confidence_NT: Float[Tensor, "N T"],
    is_correct_NT: Bool[Tensor, "N T"],
    is_scored_NT: Bool[Tensor, "N T"],
) -> Float[Tensor, "3 T M"]:
    """Predictions, correct predictions and summed confidence in each bin, per group.

    Float64 holds the counts exactly, because they are whole numbers.
    """
    bin_NT: Int[Tensor, "N T"] = (confidence_NT * NUM_BINS).long().clamp_max(NUM_BINS - 1)
    values_3NT = torch.stack(
        [torch.ones_like(confidence_NT), is_correct_NT.double(), confidence_NT]
    ).where(is_scored_NT, 0.0)
    index_3TN = bin_NT.T.expand(3, -1, -1)
    return sums_by_index(values_3NT.transpose(1, 2).double(), index_3TN, NUM_BINS)


def calibration_error(counts_3M: Float[Tensor, "3 *T M"]) -> Float[Tensor, "*T"]:
    """Gap between accuracy and mean confidence, averaged over the predictions of all bins."""
    number, correct, confidence = counts_3M
    return (correct - confidence).abs().sum(dim=-1) / number.sum(dim=-1)
