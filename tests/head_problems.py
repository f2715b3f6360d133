"""A softmax head with features and answers at random, for tests of posteriors over heads."""

import torch
from torch import Tensor

from epigrok.posteriors import Head, HeadCurvature, head_curvature
from epigrok.random_streams import integers, normal, stream_key


def head_problem(num_answers: int = 40, width: int = 6, classes: int = 4) -> tuple[Tensor, ...]:
    """Features, head and answers."""
    features = normal(stream_key(0, "features"), (num_answers, width)).double()
    weight = 0.7 * normal(stream_key(0, "weight"), (classes, width)).double()
    answers = integers(stream_key(0, "answers"), classes, (num_answers,))
    return features, weight, answers


def curvature_of(
    features: Tensor, weight: Tensor, answers: Tensor, chunk: int = 7
) -> HeadCurvature:
    """Kronecker factors, streamed over chunks of the data."""
    chunks = zip(features.split(chunk), answers.split(chunk), strict=True)
    return head_curvature(Head(weight_CD=weight), chunks)


def kronecker_product(curvature: HeadCurvature, prior_precision: float = 0.0) -> Tensor:
    """The posterior precision over all entries of the head, rows one after another."""
    product = torch.kron(curvature.class_factor_CC, curvature.feature_factor_DD)
    return product + prior_precision * torch.eye(len(product), dtype=torch.float64)
