"""Networks that map tokens to features and features to logits; they know nothing of tasks."""

import torch

from epigrok.config import RunConfig, TransformerConfig
from epigrok.model.mlp import MLP, initialise_mlp
from epigrok.model.transformer import Transformer, initialise_transformer

__all__ = ["MLP", "Network", "Transformer", "build_model"]

Network = Transformer | MLP
"""Both have `features`, `head_weight` and `forward`, the last being the product of the others."""


def build_model(config: RunConfig, device: torch.device | str = "cpu") -> Network:
    """The run's network with its initial weights: a function of the config alone."""
    task = config.task
    # Constructing torch layers draws from the global generator, which belongs to the caller.
    with torch.random.fork_rng(devices=[]):
        if isinstance(config.model, TransformerConfig):
            window = task.num_examples * task.example_length
            model = Transformer(config.model, task.vocabulary_size, window, task.example_length)
            initialise_transformer(model, config.model, config.run_seed)
            return model.to(device)
        mlp = MLP(config.model, task.vocabulary_size)
        initialise_mlp(mlp, config.run_seed)
        return mlp.to(device)
