"""The output head of a network, as the monitor reads it: see `posteriors.head`."""

from epigrok.posteriors.calling import Forward
from epigrok.posteriors.head import Head, HeadInputs, head_inputs

__all__ = ["Forward", "Head", "HeadInputs", "head_inputs"]
