"""The feed-forward layers of a block; `gpu/test_fast_path.py` has their fused form."""

import torch

from epigrok.model.feedforward import feedforward
from epigrok.random_streams import normal, stream_key


def test_it_rectifies_between_two_products() -> None:
    x, into, out_of = (
        normal(stream_key(0, str(shape)), shape).double() for shape in ((2, 3, 4), (5, 4), (4, 5))
    )
    expected = torch.einsum("df,btf->btd", out_of, torch.einsum("fd,btd->btf", into, x).clamp(0))
    torch.testing.assert_close(feedforward(x, into, out_of), expected)
    assert (expected != torch.einsum("df,fe,bte->btd", out_of, into, x)).any()
