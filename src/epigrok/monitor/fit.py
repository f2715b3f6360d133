"""What a training loop tells a monitor of how well its training set is fitted."""

from dataclasses import dataclass
from numbers import Real

from torch import Tensor

from epigrok.errors import UserError


@dataclass(frozen=True, kw_only=True)
class SignsOfFit:
    """Signs that the training set is fitted.

    Without either, the rule takes the confidence on the seen inputs.
    """

    train_accuracy: float | None = None
    train_loss: float | None = None

    @classmethod
    def given(
        cls, train_accuracy: float | Tensor | None, train_loss: float | Tensor | None
    ) -> "SignsOfFit":
        """Of what a training loop passed, or a sentence on what is wrong with it."""
        accuracy, loss = (
            _number("train_accuracy", train_accuracy),
            _number("train_loss", train_loss),
        )
        # Averages of float32 can end just above one. What is not a number says "not fitted".
        if accuracy is not None and (accuracy < 0.0 or accuracy > 1.0 + 1e-6):
            raise UserError(f"train_accuracy must be a share between 0 and 1, got {accuracy:g}")
        if loss is not None and loss < 0.0:
            raise UserError(
                f"train_loss must be a mean cross-entropy, which is 0 or more, got {loss:g}"
            )
        return cls(train_accuracy=accuracy, train_loss=loss)


def _number(name: str, value: float | Tensor | None) -> float | None:
    if isinstance(value, Tensor) and value.numel() != 1:
        raise UserError(f"{name} must be one number, got a tensor of shape {list(value.shape)}")
    if value is not None and not isinstance(value, Tensor | Real):
        raise UserError(f"{name} must be a number, got {type(value).__name__}")
    if isinstance(value, Tensor):
        return float(value.detach())
    return None if value is None else float(value)
