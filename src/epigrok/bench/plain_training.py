"""Training as a textbook writes it: what our own step is measured against, and must agree with."""

from collections.abc import Iterator
from math import inf

import torch
from torch import Tensor
from torch.nn import functional

from epigrok.config import RunConfig
from epigrok.model import Network, Transformer
from epigrok.model.attention import rotate
from epigrok.model.transformer import Block
from epigrok.tasks import TaskFamily
from epigrok.training import TrainState, learning_rate_scale, mean_loss
from epigrok.training.optimiser import set_learning_rates


def plain_steps(
    state: TrainState, family: TaskFamily, config: RunConfig, compiled: bool
) -> Iterator[Tensor]:
    """Plain network, stock optimiser, no graph; yields the loss of each step."""
    device = next(state.model.parameters()).device
    forward = torch.compile(plain_logits, dynamic=False) if compiled else plain_logits
    clip_norm = inf if config.optim.clip_norm is None else config.optim.clip_norm
    for step in range(config.num_steps):
        batch = family.training_batch(step)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits_BTC = forward(state.model, batch.tokens_BL)
        loss = mean_loss(logits_BTC, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(state.model.parameters(), clip_norm)
        scale = learning_rate_scale(step, config.schedule, config.num_steps)
        set_learning_rates(state.optimisers, scale)
        for optimiser in state.optimisers:
            optimiser.step()
            optimiser.zero_grad()
        yield loss.detach()


def plain_logits(model: Network, tokens_BL: Tensor) -> Tensor:
    """The same logits from every block at every position, with stock attention."""
    if not isinstance(model, Transformer):
        return model(tokens_BL)
    hidden_BLD, rotary = model.embedding(tokens_BL), model.get_buffer("rotary")
    for block in model.blocks:
        assert isinstance(block, Block)
        hidden_BLD = _plain_block(block, hidden_BLD, rotary)
    asking = slice(model.example_length - 2, None, model.example_length)
    return functional.linear(model.norm(hidden_BLD)[:, asking], model.head_weight)


def _plain_block(block: Block, hidden_BLD: Tensor, rotary: Tensor) -> Tensor:
    normed_BLD = block.attention_norm(hidden_BLD)
    projections = (block.query(normed_BLD), *block.key_value(normed_BLD).chunk(2, dim=-1))
    query, key, value = (
        part.unflatten(-1, (block.num_heads, -1)).transpose(1, 2) for part in projections
    )
    rotary = rotary[:, : hidden_BLD.shape[1]]
    attended = functional.scaled_dot_product_attention(
        rotate(query, rotary), rotate(key, rotary), value, is_causal=True
    )
    hidden_BLD = hidden_BLD + block.attention_out(attended.transpose(1, 2).flatten(start_dim=2))
    inner = functional.relu(block.feedforward_in(block.feedforward_norm(hidden_BLD)))
    return hidden_BLD + block.feedforward_out(inner)
