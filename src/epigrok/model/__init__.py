"""Networks that map tokens to features and features to logits; they know nothing of tasks."""

from epigrok.model.mlp import MLP
from epigrok.model.network import Network, build_model, register_model
from epigrok.model.transformer import Transformer

__all__ = ["MLP", "Network", "Transformer", "build_model", "register_model"]
