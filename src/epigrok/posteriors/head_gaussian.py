"""A Gaussian over the output head: what the Laplace posteriors share.

Each of them says how its covariance follows from features and answers, and how to draw from it.
Samples replace the head alone; an embedding tied to it does not change.

Letters: D features, C classes.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from epigrok.posteriors.calling import IGNORE_INDEX, Forward
from epigrok.posteriors.head import Head
from epigrok.posteriors.head_curvature import (
    LabelledFeatures,
    PriorPrecision,
    is_at_bound,
    labelled_features,
)
from epigrok.posteriors.protocol import Facts, features_of, save_posterior

# Not `Self`, which checks of types at run time refuse outside of classes that they decorate whole.
_Own = TypeVar("_Own", bound="HeadGaussian")


@dataclass(frozen=True)
class HeadSample:
    """A head to predict with.

    `dict` of it gives parameters by name, unless the head has none of its own in the model.
    """

    head: Head

    def logits(
        self, model: nn.Module, inputs: Any, forward: Forward | None
    ) -> Float[Tensor, "*positions C"]:
        """Logits of this head; an embedding that is tied to the model's own head stays as it is."""
        name = self.head.weight_name or None
        return self.head.logits(features_of(model, inputs, forward, name))

    def keys(self) -> Iterable[str]:
        """Names of its parameters."""
        return self.head.parameters().keys()

    def __getitem__(self, name: str) -> Tensor:
        return self.head.parameters()[name]


class HeadGaussian(ABC):
    """A posterior over the output head from a Laplace fit; a method adds fit and sampling."""

    name: str
    head: Head
    """The head at its mean."""
    prior_precision: float
    log_evidence: float
    num_answers: int
    """Answers it was fitted to: the curvature is a sum over them."""
    save = save_posterior

    @classmethod
    def fit(
        cls: type[_Own],
        model: nn.Module,
        loader: Iterable[Any],
        *,
        head: str | None = None,
        forward: Forward | None = None,
        ignore_index: int = IGNORE_INDEX,
        prior: PriorPrecision = "evidence",
    ) -> _Own:
        """The posterior over the head of any network; the network stays as it is.

        Args:
            model: Its logits must be what its head returns, or rows of it.
            loader: Batches: pairs (inputs, labels), or mappings with `labels`. They should be the
                training data, each once: the width of the posterior depends on their number.
            head: Name of the last layer, where several return the logits.
            forward: Calls the model on a batch's inputs, if it needs a way of its own.
            ignore_index: Label of positions that do not count.
            prior: Prior precision of weights and bias, or "evidence" for the most likely one.
        """
        found, answers = labelled_features(
            model, loader, head=head, forward=forward, ignore_index=ignore_index
        )
        return cls.from_answers(found, answers, prior)

    @classmethod
    @abstractmethod
    def from_answers(
        cls: type[_Own], head: Head, answers: Iterable[LabelledFeatures], prior: PriorPrecision
    ) -> _Own:
        """The posterior from features and the answers they should give."""

    @property
    def facts(self) -> Facts:
        """Prior precision, evidence, number of answers, and whether the search hit a bound."""
        return {
            "prior_precision": self.prior_precision,
            "log_evidence": self.log_evidence,
            "num_fit_answers": self.num_answers,
            "prior_precision_is_at_bound": is_at_bound(self.prior_precision),
        }

    @abstractmethod
    def sample_head(self, index: int) -> Float[Tensor, "C D"]:
        """Weights of sample `index`, the bias as last column where there is one."""

    def sample(self, index: int) -> HeadSample:
        """Replace the head and nothing else."""
        return HeadSample(self.head.with_matrix(self.sample_head(index)))

    def head_logits(
        self, features: Float[Tensor, "*positions D"], index: int
    ) -> Float[Tensor, "*positions C"]:
        """Logits under the head of sample `index`."""
        extended = self.head.extended(features)
        return functional.linear(extended, self.sample_head(index).to(features.dtype))

    def __repr__(self) -> str:
        fitted = f"prior precision {self.prior_precision:.4g}, {self.num_answers:,} answers"
        return f"{type(self).__name__}({self.name!r}, {self.head!r}, {fitted})"
