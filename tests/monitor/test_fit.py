"""What a training loop may say of its fit, and what is refused."""

from math import inf

import pytest
import torch
from torch import Tensor

from epigrok.errors import UserError
from epigrok.monitor.fit import SignsOfFit


def test_numbers_and_tensors_of_one_number_are_taken() -> None:
    assert SignsOfFit.given(0.5, torch.tensor([2.0])) == SignsOfFit(
        train_accuracy=0.5, train_loss=2.0
    )
    assert SignsOfFit.given(None, None) == SignsOfFit()


def test_a_broken_loss_and_an_average_just_above_one_are_taken() -> None:
    assert SignsOfFit.given(None, inf).train_loss == inf
    mean = torch.ones(3).mul(1.0 + 2e-7).mean()
    assert SignsOfFit.given(mean, None).train_accuracy == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("accuracy", "loss", "sentence"),
    [
        (97.0, None, "train_accuracy must be a share between 0 and 1, got 97"),
        (-0.1, None, "train_accuracy must be a share"),
        (None, -0.1, "train_loss must be a mean cross-entropy, which is 0 or more, got -0.1"),
        (torch.ones(3), None, r"train_accuracy must be one number, got a tensor of shape \[3\]"),
        (None, torch.ones(2, 1), r"train_loss must be one number, got a tensor of shape \[2, 1\]"),
    ],
)
def test_what_cannot_be_is_refused(
    accuracy: float | Tensor | None, loss: float | Tensor | None, sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        SignsOfFit.given(accuracy, loss)
