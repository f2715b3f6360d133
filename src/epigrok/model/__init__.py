"""Networks that map tokens to features and features to logits. One file per network.

They know nothing of tasks or posteriors. Their settings live in `config`, their optimisers in
`training`.
"""

from epigrok.model.mlp import MLP
from epigrok.model.network import Network, build_model, register_model
from epigrok.model.transformer import Transformer

__all__ = ["MLP", "Network", "Transformer", "build_model", "register_model"]
