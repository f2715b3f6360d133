"""Random numbers as pure functions of (seed, name, counter, index)."""

import math

import pytest
import torch

from epigrok.random_streams import (
    choose_distinct,
    integers,
    normal,
    normal_of_streams,
    random_bits,
    stream_key,
    uniform,
)

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def reference_mix(value: int) -> int:
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def test_the_reference_is_the_published_splitmix64() -> None:
    # First outputs of the public C implementation from state 1234567.
    outputs = [reference_mix((1234567 + (k + 1) * GOLDEN) & MASK) for k in range(3)]
    assert outputs == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@pytest.mark.parametrize("counter", [0, 1, 99_999])
def test_bits_are_splitmix64_from_a_hashed_state(counter: int) -> None:
    key = stream_key(3, "batches")
    state = reference_mix((counter * GOLDEN + key) & MASK)
    expected = [reference_mix((state + (k + 1) * GOLDEN) & MASK) for k in range(5)]
    assert [value & MASK for value in random_bits(key, (5,), counter).tolist()] == expected


def test_a_counter_may_be_a_tensor() -> None:
    key = stream_key(0, "x")
    assert torch.equal(random_bits(key, (7,), 5), random_bits(key, (7,), torch.tensor(5)))


def test_streams_differ_by_seed_name_and_counter() -> None:
    draws = [
        random_bits(stream_key(seed, name), (4,), counter)
        for seed in (0, 1)
        for name in ("a", "b")
        for counter in (0, 1)
    ]
    assert len({tuple(draw.tolist()) for draw in draws}) == 8


def test_normal_numbers_have_the_moments_of_a_standard_normal() -> None:
    z = normal(stream_key(0, "noise"), (1_000_000,)).double()
    assert abs(z.mean()) < 4e-3
    assert abs(z.var() - 1.0) < 6e-3
    assert abs(z.pow(3).mean()) < 1.6e-2
    assert abs(z.pow(4).mean() - 3.0) < 4e-2
    assert z.abs().max() < math.sqrt(2 * 24 * math.log(2)) + 1e-6


def test_element_i_of_a_normal_draw_ignores_the_shape() -> None:
    key = stream_key(0, "noise")
    assert torch.equal(normal(key, (10,), 3)[:4], normal(key, (2, 2), 3).flatten())


def test_consecutive_draws_are_uncorrelated() -> None:
    key = stream_key(0, "noise")
    first, second = normal(key, (100_000,), 0), normal(key, (100_000,), 1)
    for shift in (0, 1):
        product = first[shift:] * second[: 100_000 - shift]
        assert abs(product.mean()) < 4 / math.sqrt(100_000)


def test_uniform_numbers_and_integers_fill_their_range_evenly() -> None:
    u = uniform(stream_key(0, "u"), (200_000,))
    assert u.min() >= 0.0
    assert u.max() < 1.0
    assert abs(u.mean() - 0.5) < 4 / math.sqrt(12 * 200_000)
    counts = integers(stream_key(0, "i"), 29, (290_000,)).bincount(minlength=29)
    # Chi-square with 28 degrees of freedom: mean 28, standard deviation 7.5.
    assert ((counts - 10_000).double().square() / 10_000).sum() < 28 + 4 * 7.5
    assert len(counts) == 29


def test_chosen_rows_are_distinct_and_every_index_is_as_likely() -> None:
    chosen = choose_distinct(stream_key(0, "c"), 40, (5_000, 8))
    assert all(len(set(row)) == 8 for row in chosen.tolist())
    counts = chosen.flatten().bincount(minlength=40)
    assert ((counts - 1_000).double().square() / 1_000).sum() < 39 + 4 * 9


def test_a_population_smaller_than_the_row_is_drawn_with_replacement() -> None:
    chosen = choose_distinct(stream_key(0, "c"), 3, (3_000, 8))
    counts = chosen.flatten().bincount(minlength=3)
    assert len(counts) == 3
    assert ((counts - 8_000).double().square() / 8_000).sum() < 2 + 4 * 2
    # What is asked last is not among what was shown.
    assert not (chosen[:, :-1] == chosen[:, -1:]).any()
    assert choose_distinct(stream_key(0, "c"), 1, (2, 3)).tolist() == [[0] * 3] * 2


def test_many_streams_at_once_draw_what_each_draws_alone() -> None:
    keys = [stream_key(3, name) for name in ("first", "second", "third")]
    sizes = [5, 1, 700]
    together = normal_of_streams(keys, sizes, 9, "cpu").split(sizes)
    for key, size, part in zip(keys, sizes, together, strict=True):
        assert torch.equal(part, normal(key, (size,), 9))


def test_a_draw_in_parts_is_the_draw_as_a_whole() -> None:
    key = stream_key(0, "parts")
    whole = normal(key, (10,), 3)
    parts = [normal(key, (4,), 3), normal(key, (6,), 3, start=4)]
    assert torch.equal(torch.cat(parts), whole)
