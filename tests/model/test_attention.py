"""Causal attention and its rotary encoding, without the network around them."""

import torch
from torch.nn import functional

from epigrok.model.attention import (
    _attention_by_products,
    asking_attention,
    rotary_tables,
    rotate,
    self_attention,
)
from epigrok.random_streams import normal, stream_key

ROWS, LENGTH, HEADS, HEAD_WIDTH = 3, 11, 2, 4
WIDTH = HEADS * HEAD_WIDTH


def drawn(name: str, *shape: int) -> torch.Tensor:
    return normal(stream_key(0, name), shape).double()


def tables() -> torch.Tensor:
    return rotary_tables(16, HEAD_WIDTH).double()


def test_asking_at_some_positions_reads_what_they_read_among_all() -> None:
    projected = drawn("projected", ROWS, LENGTH, 3 * WIDTH)
    asking = slice(1, None, 3)
    everywhere = self_attention(projected, tables(), HEADS)
    query, key_value = projected[..., :WIDTH], projected[..., WIDTH:]
    asked = asking_attention(query[:, asking], key_value, tables(), HEADS, asking)
    torch.testing.assert_close(asked, everywhere[:, asking])


def test_the_first_position_reads_itself_alone() -> None:
    projected = drawn("projected", ROWS, LENGTH, 3 * WIDTH)
    value = projected[..., 2 * WIDTH :]
    torch.testing.assert_close(self_attention(projected, tables(), HEADS)[:, 0], value[:, 0])


def test_scores_depend_on_distances_only() -> None:
    query, key = (drawn(name, 1, 1, 1, HEAD_WIDTH).expand(1, 1, 16, HEAD_WIDTH) for name in "qk")
    scores = rotate(query, tables())[0, 0] @ rotate(key, tables())[0, 0].T
    for distance in range(-5, 6):
        along = scores.diagonal(distance)
        torch.testing.assert_close(along, along[:1].expand_as(along))
    assert scores[0].unique().numel() == 16


def test_turning_keeps_lengths_and_types() -> None:
    x = drawn("x", 2, HEADS, 16, HEAD_WIDTH)
    torch.testing.assert_close(rotate(x, tables()).norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(rotate(x, tables())[:, :, 0], x[:, :, 0])
    assert rotate(x.bfloat16(), rotary_tables(16, HEAD_WIDTH)).dtype == torch.bfloat16


def test_attention_by_products_is_that_of_torch() -> None:
    query, key, value = drawn("query, key and value", 3, ROWS, HEADS, LENGTH, HEAD_WIDTH)
    may_see = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
    usual = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    torch.testing.assert_close(_attention_by_products(query, key, value, may_see), usual)
