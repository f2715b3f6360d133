"""The metric is the mean of the decomposition over everything it was shown."""

import pytest
import torch

from epigrok.errors import UserError
from epigrok.integrations.torchmetrics import EpistemicUncertainty
from epigrok.random_streams import normal, stream_key
from epigrok.uncertainty import decompose

PROBS_SNC = normal(stream_key(0, "probs"), (6, 50, 4)).softmax(dim=-1)


@pytest.mark.parametrize("part", ["epistemic", "aleatoric", "total"])
def test_batches_of_any_size_give_the_mean_over_all_predictions(part: str) -> None:
    metric = EpistemicUncertainty(part)
    metric.update(PROBS_SNC[:, :13])
    metric.update(PROBS_SNC[:, 13:].view(6, 37, 1, 4))
    expected = getattr(decompose(PROBS_SNC), part).mean()
    torch.testing.assert_close(metric.compute(), expected)
    metric.reset()
    metric.update(PROBS_SNC[:, :5])
    torch.testing.assert_close(metric.compute(), getattr(decompose(PROBS_SNC[:, :5]), part).mean())


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(UserError, match="one of epistemic, aleatoric, total, got 'mean'"):
        EpistemicUncertainty("mean")
