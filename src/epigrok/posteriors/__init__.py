"""Distributions over the weights of a network; one method per module, one protocol."""

from epigrok.posteriors.point import Point
from epigrok.posteriors.protocol import Posterior, Sample, sampled_logits

__all__ = ["Point", "Posterior", "Sample", "sampled_logits"]
