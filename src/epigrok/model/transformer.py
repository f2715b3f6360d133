"""Decoder-only transformer: tokens -> features -> logits at answer positions.

Pre-norm blocks, full rotary encoding, ReLU feed-forward, projections without biases, output head
tied to the embedding. It knows nothing of tasks, only that rows consist of examples of
`example_length` tokens and that the last token of each is predicted from the one before.

Letters: B rows, L tokens, T answers, D width, H heads, K head width, C classes (= vocabulary).
"""

from math import sqrt

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from epigrok.config import TransformerConfig
from epigrok.random_streams import normal, stream_key

NORM_EPS = 1e-5
ROTARY_BASE = 10_000.0


class Transformer(nn.Module):
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
        """What the head sees: normalised hidden states at the positions that predict answers."""
        # Nothing is predicted from the last answer, so it is not computed.
        hidden_BLD = self.embedding(tokens_BL[:, :-1])
        asking = slice(self.example_length - 2, None, self.example_length)
        for block in self.blocks[:-1]:
            hidden_BLD = block(hidden_BLD, self.rotary)
        # The last block is read at answer positions only, so only they need queries and an MLP.
        return self.norm(self.blocks[-1](hidden_BLD, self.rotary, asking))

    def forward(self, tokens_BL: Int[Tensor, "B L"]) -> Float[Tensor, "B T C"]:
        """Logits of each row's answers."""
        return functional.linear(self.features(tokens_BL), self.head_weight)


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
    ) -> Float[Tensor, "B T D"]:
        """The block's output at the positions `asking`, by default at all."""
        normed_BLD = self.attention_norm(hidden_BLD)
        residual_BTD = hidden_BLD if asking is None else hidden_BLD[:, asking]
        attended_BTD = self._attend(normed_BLD, rotary, asking)
        residual_BTD = residual_BTD + self.attention_out(attended_BTD)
        inner = functional.relu(self.feedforward_in(self.feedforward_norm(residual_BTD)))
        return residual_BTD + self.feedforward_out(inner)

    def _attend(
        self,
        normed_BLD: Float[Tensor, "B L D"],
        rotary: Float[Tensor, "2 W K"],
        asking: slice | None,
    ) -> Float[Tensor, "B T D"]:
        length = normed_BLD.shape[1]
        rotary = rotary[:, :length]
        keys, values = self.key_value(normed_BLD).chunk(2, dim=-1)
        keys_BHLK = rotate(self._by_head(keys), rotary)
        if asking is None:
            queries_BHLK = rotate(self._by_head(self.query(normed_BLD)), rotary)
            attended = functional.scaled_dot_product_attention(
                queries_BHLK, keys_BHLK, self._by_head(values), is_causal=True
            )
        else:
            queries_BHTK = rotate(
                self._by_head(self.query(normed_BLD[:, asking])), rotary[:, asking]
            )
            position = torch.arange(length, device=normed_BLD.device)
            may_see_TL = position[asking, None] >= position
            attended = functional.scaled_dot_product_attention(
                queries_BHTK, keys_BHLK, self._by_head(values), attn_mask=may_see_TL
            )
        return attended.transpose(1, 2).flatten(start_dim=2)

    def _by_head(self, projected_BLD: Float[Tensor, "B L D"]) -> Float[Tensor, "B H L K"]:
        return projected_BLD.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)


def rotary_tables(window: int, head_width: int) -> Float[Tensor, "2 W K"]:
    """Cosines and sines of position times frequency, for both halves of a head."""
    exponent = torch.arange(0, head_width, 2, dtype=torch.float64) / head_width
    angle = torch.arange(window, dtype=torch.float64)[:, None] * ROTARY_BASE**-exponent
    angle = torch.cat([angle, angle], dim=-1)
    return torch.stack([angle.cos(), angle.sin()]).to(torch.get_default_dtype())


def rotate(x_BHLK: Float[Tensor, "B H L K"], rotary: Float[Tensor, "2 L K"]) -> Tensor:
    """Turn each channel pair (i, i + K/2) by its position's angle."""
    first, second = x_BHLK.chunk(2, dim=-1)
    cosines, sines = rotary
    # In the tables' precision: bfloat16 angles would make positions differ by more than turns do.
    turned = x_BHLK * cosines + torch.cat([-second, first], dim=-1) * sines
    return turned.to(x_BHLK.dtype)


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
