"""Decoder-only transformer: tokens -> features -> logits at answer positions.

Pre-norm blocks, full rotary encoding, ReLU feed-forward, projections without biases, output head
tied to the embedding. Sequences consist of examples of `example_length` tokens; the network
predicts the last token of each from the one before.

Letters: B sequences, L tokens, T answers, D width, F feed-forward width, W window, K head
width, C classes (= vocabulary).
"""

from math import sqrt

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from epigrok.config import TaskConfig, TransformerConfig
from epigrok.model.attention import asking_attention, rotary_tables, self_attention
from epigrok.model.lookup import look_up
from epigrok.model.network import Network, register_model
from epigrok.random_streams import normal, stream_key

NORM_EPS = 1e-5


class Transformer(Network):
    """The whole decoder; `forward` returns logits at answer positions only."""

    def __init__(
        self, config: TransformerConfig, vocabulary_size: int, window: int, example_length: int
    ) -> None:
        super().__init__()
        self.example_length = example_length
        self.embedding = nn.Embedding(vocabulary_size, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(config.width, eps=NORM_EPS)
        rotary = rotary_tables(window, config.width // config.num_heads)
        self.register_buffer("rotary", rotary, persistent=False)

    @property
    def head_weight(self) -> Float[Tensor, "C D"]:
        """Weights that turn features into logits: the embedding itself."""
        return self.embedding.weight

    def features(self, tokens_BL: Int[Tensor, "B L"]) -> Float[Tensor, "B T D"]:
        """The head's inputs: normalised hidden states at the positions that predict answers."""
        return self._features(tokens_BL, self.example_length - 2)

    def last_features(self, tokens_BL: Int[Tensor, "B L"]) -> Float[Tensor, "B 1 D"]:
        """The same for each sequence's last answer alone."""
        return self._features(tokens_BL, tokens_BL.shape[1] - 2)

    def _features(self, tokens_BL: Int[Tensor, "B L"], first: int) -> Float[Tensor, "B T D"]:
        """Hidden states at the positions that predict answers, from the `first` one on."""
        # Nothing is predicted from the last answer, so it is not computed.
        tokens_BL = tokens_BL[:, :-1]
        hidden_BLD = look_up(self.embedding.weight, tokens_BL)
        asking = slice(first, None, self.example_length)
        for index, block in enumerate(self.blocks[:-1]):
            projected_BLE = self._first_projections(tokens_BL) if index == 0 else None
            hidden_BLD = block(hidden_BLD, self.rotary, projected_BLE=projected_BLE)
        # The last block is read at answer positions only, so only they need queries and an MLP.
        return self.norm(self.blocks[-1](hidden_BLD, self.rotary, asking))

    def _first_projections(self, tokens_BL: Int[Tensor, "B L"]) -> Float[Tensor, "B L E"]:
        """Queries, keys and values of the first block, looked up by token: it sees only tokens."""
        first = self.blocks[0]
        assert isinstance(first, Block)
        table_CE = first.projections(first.attention_norm(self.embedding.weight))
        if not (torch.is_grad_enabled() or table_CE.is_cuda):
            return functional.embedding(tokens_BL, table_CE)
        every_token_C = torch.arange(len(table_CE), device=tokens_BL.device)
        # As a product, because its gradient is far faster than that of indexing.
        return (tokens_BL[..., None] == every_token_C).to(table_CE.dtype) @ table_CE

    def flops_per_sequence(self, length: int) -> float | None:
        """Operations in the matrix products of all blocks, without head and embedding."""
        width = self.embedding.embedding_dim
        block = self.blocks[0]
        assert isinstance(block, Block)
        per_token = 4 * width**2 + 2 * width * block.feedforward_in.out_features
        # A position attends to half of the window on average, for scores and for values.
        attention = length * width
        return 2.0 * len(self.blocks) * (per_token + attention) * length


class Block(nn.Module):
    """Causal attention and feed-forward, each on the normalised residual stream."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        width, inner = config.width, config.feedforward_width
        self.num_heads = config.num_heads
        self.attention_norm = nn.LayerNorm(width, eps=NORM_EPS)
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, 2 * width, bias=False)
        self.attention_out = nn.Linear(width, width, bias=False)
        self.feedforward_norm = nn.LayerNorm(width, eps=NORM_EPS)
        self.feedforward_in = nn.Linear(width, inner, bias=False)
        self.feedforward_out = nn.Linear(inner, width, bias=False)

    def forward(
        self,
        hidden_BLD: Float[Tensor, "B L D"],
        rotary: Float[Tensor, "2 W K"],
        asking: slice | None = None,
        projected_BLE: Float[Tensor, "B L E"] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """The block's output at the positions `asking`, by default at all.

        Args:
            hidden_BLD: The residual stream.
            rotary: Cosines and sines of the positions.
            asking: Positions whose output is wanted.
            projected_BLE: Queries, keys and values of all positions, where they are known already.
        """
        if asking is None:
            if projected_BLE is None:
                projected_BLE = self.projections(self.attention_norm(hidden_BLD))
            residual_BTD = hidden_BLD
            attended_BTD = self_attention(projected_BLE, rotary, self.num_heads)
        else:
            normed_BLD = self.attention_norm(hidden_BLD)
            residual_BTD = hidden_BLD[:, asking]
            attended_BTD = asking_attention(
                self.query(normed_BLD[:, asking]),
                self.key_value(normed_BLD),
                rotary,
                self.num_heads,
                asking,
            )
        residual_BTD = residual_BTD + self.attention_out(attended_BTD)
        normed_BTD = self.feedforward_norm(residual_BTD)
        inner_BTF = functional.relu(self.feedforward_in(normed_BTD))
        return residual_BTD + self.feedforward_out(inner_BTF)

    def projections(self, normed: Float[Tensor, "... D"]) -> Float[Tensor, "... E"]:
        """Queries, keys and values, in one product."""
        return functional.linear(normed, torch.cat([self.query.weight, self.key_value.weight]))


@register_model(TransformerConfig)
def build_transformer(config: TransformerConfig, task: TaskConfig, run_seed: int) -> Transformer:
    """A transformer with its initial weights."""
    window = task.num_examples * task.example_length
    model = Transformer(config, task.vocabulary_size, window, task.example_length)
    initialise_transformer(model, config, run_seed)
    return model


def initialise_transformer(model: Transformer, config: TransformerConfig, run_seed: int) -> None:
    """Draw the initial weights from the run's own stream; gains start at one."""
    # Keeps the residual stream's variance from growing with depth.
    output_std = config.init_std / sqrt(2 * config.num_layers)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim < 2:
                continue
            std = config.init_std
            if name.startswith("embedding"):
                std = config.embedding_init_std
            elif name.endswith("feedforward_out.weight"):
                std = output_std
            key = stream_key(run_seed, f"init:{name}")
            parameter.copy_(std * normal(key, tuple(parameter.shape)))
