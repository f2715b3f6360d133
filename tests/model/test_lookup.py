"""Rows of a table chosen by tokens, with the gradient that a GPU takes, here on a CPU."""

import torch
from torch.nn import functional

from epigrok.model.lookup import RepeatableLookup, look_up


def test_the_repeatable_gradient_of_a_lookup_is_the_usual_one() -> None:
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(7, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    tokens = torch.randint(7, (5, 11), generator=generator)
    grad = torch.randn(5, 11, 4, generator=generator, dtype=torch.float64)
    rows = RepeatableLookup.apply(table, tokens)
    assert torch.equal(rows, table[tokens])
    assert torch.equal(look_up(table, tokens), table[tokens])
    (ours,) = torch.autograd.grad(rows, table, grad)
    (usual,) = torch.autograd.grad(functional.embedding(tokens, table), table, grad)
    torch.testing.assert_close(ours, usual)
