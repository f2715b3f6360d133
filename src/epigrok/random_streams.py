"""Named streams of random numbers, as pure functions of (seed, name, counter, index).

There is no generator object, so there is no state to save or restore. Drawing from one stream
never shifts another, batch `k` is the same whether or not batch `k - 1` was drawn, and the integers
are identical on every device and under `torch.compile`. A stream is a 64-bit key;
element `i` of draw `counter` is the SplitMix64 hash (Steele, Lea & Flood 2014) of the three. The
finaliser passes BigCrush as a sequential generator, which is how it is used here.
"""

import hashlib
from collections.abc import Sequence
from itertools import accumulate
from math import prod

import torch
from jaxtyping import Float, Int
from torch import Tensor


def _signed(value: int) -> int:
    """The 64 low bits of `value`, as the signed integer torch stores them in."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >= 1 << 63 else value


_GOLDEN = _signed(0x9E3779B97F4A7C15)
_GOLDEN_INVERSE = _signed(pow(0x9E3779B97F4A7C15, -1, 1 << 64))
_MULTIPLIER_1 = _signed(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = _signed(0x94D049BB133111EB)


def stream_key(seed: int, name: str) -> int:
    """Key of the stream `name` under `seed`."""
    digest = hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=8).digest()
    return _signed(int.from_bytes(digest, "big"))


def random_bits(
    key: int,
    shape: tuple[int, ...],
    counter: int | Tensor = 0,
    device: torch.device | str = "cpu",
    start: int = 0,
) -> Int[Tensor, "..."]:
    """Independent 64-bit integers; `counter` (a step, a sample index) selects the draw.

    Elements count from `start`, so that a large draw can be made in parts.
    """
    if not isinstance(counter, Tensor):
        counter = torch.tensor(counter, device=device)
    # Hashing the counter first keeps draws apart; adding it to the index would make them overlap.
    draw = _mix(counter.to(torch.int64) * _GOLDEN + key)
    index = torch.arange(start + 1, start + prod(shape) + 1, device=device)
    # index·golden + draw, with the run-time value inside the product: a compiler that sees the
    # index alone times a constant computes that in 32 bits.
    return _mix((index + draw * _GOLDEN_INVERSE) * _GOLDEN).view(shape)


def uniform(
    key: int,
    shape: tuple[int, ...],
    counter: int | Tensor = 0,
    device: torch.device | str = "cpu",
) -> Float[Tensor, "..."]:
    """Uniform numbers in [0, 1), on a grid of 2^-24 that float32 holds exactly."""
    return _shift_right(random_bits(key, shape, counter, device), 40).float() * 2.0**-24


def normal(
    key: int,
    shape: tuple[int, ...],
    counter: int | Tensor = 0,
    device: torch.device | str = "cpu",
    start: int = 0,
) -> Float[Tensor, "..."]:
    """Standard normal numbers by Box-Muller, one per 64 bits, so element `i` ignores the shape."""
    return _normal(random_bits(key, shape, counter, device, start))


def normal_of_streams(
    keys: Sequence[int], sizes: Sequence[int], counter: int | Tensor, device: torch.device | str
) -> Float[Tensor, " N"]:
    """The numbers `normal` draws for each key in turn, `sizes` of them, all at once.

    A GPU is as fast with many as with a few: for a network's parameters one by one it would wait
    for the host most of the time.
    """
    if not isinstance(counter, Tensor):
        counter = torch.tensor(counter, device=device)
    draw = _mix(counter.to(torch.int64) * _GOLDEN + torch.tensor(keys, device=device))
    starts, number = [0, *accumulate(sizes)][:-1], sum(sizes)
    # Each stream counts its own elements from one.
    shift = draw * _GOLDEN_INVERSE + 1 - torch.tensor(starts, device=device)
    of_stream = torch.tensor(sizes, device=device)
    shift = shift.repeat_interleave(of_stream, output_size=number)
    return _normal(_mix((torch.arange(number, device=device) + shift) * _GOLDEN))


def integers(
    key: int,
    high: int,
    shape: tuple[int, ...],
    counter: int | Tensor = 0,
    device: torch.device | str = "cpu",
) -> Int[Tensor, "..."]:
    """Integers in [0, high), by multiplying 32 random bits; the bias is below high / 2^32."""
    return (_shift_right(random_bits(key, shape, counter, device), 32) * high) >> 32


def choose_distinct(
    key: int,
    population: int,
    shape: tuple[int, int],
    counter: int | Tensor = 0,
    device: torch.device | str = "cpu",
) -> Int[Tensor, "sets size"]:
    """Sets of `size` indices below `population`, distinct within a set if there are enough.

    In a smaller population indices repeat, but never the last of a set. It is the query, and if
    the context showed its answer, the model would only have to copy.
    """
    num_sets, size = shape
    if size > population:
        last = integers(key, population, shape, counter, device)[:, -1:]
        distance = 1 + integers(key, max(1, population - 1), shape, counter, device)[:, :-1]
        return torch.cat([(last + distance) % population, last], dim=1)
    # The order of independent keys is a uniform permutation, on every device.
    return random_bits(key, (num_sets, population), counter, device).topk(size, dim=1).indices


def _normal(bits: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
    # (k + 1) / 2^24 lies in (0, 1]: the logarithm is finite and the tail ends at 5.8 sigma.
    radius = (-2.0 * torch.log((_shift_right(bits, 40) + 1).float() * 2.0**-24)).sqrt()
    angle = (bits & 0xFFFFFF).float() * (2.0 * torch.pi * 2.0**-24)
    return radius * torch.cos(angle)


def _mix(value: Tensor) -> Tensor:
    """SplitMix64 finaliser; int64 multiplication wraps, as the algorithm needs."""
    value = (value ^ _shift_right(value, 30)) * _MULTIPLIER_1
    value = (value ^ _shift_right(value, 27)) * _MULTIPLIER_2
    return value ^ _shift_right(value, 31)


def _shift_right(value: Tensor, places: int) -> Tensor:
    """Logical shift: torch's own is arithmetic on signed integers."""
    return (value >> places) & ((1 << (64 - places)) - 1)
