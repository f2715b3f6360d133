"""What the theory accepts and returns: float64 in, float64 out, one sentence when it cannot.

Scalars come back as floats, arrays as arrays. Every mistake raises `UserError` naming the value.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from epigrok.errors import UserError

if TYPE_CHECKING:
    Array = NDArray[np.float64]
else:
    # NumPy turns zero-dimensional results into scalars, which behave like the arrays they were.
    Array = NDArray[np.float64] | np.float64
RealLike = float | int | np.number[Any] | Sequence[Any] | NDArray[Any]
"""Anything numpy reads as real numbers."""
FloatOrArray = float | Array
"""A float for scalar arguments, otherwise an array of their broadcast shape."""
Which = Literal["emp", "gen"]
"""Empirical (training) or generalisation side of a quantity."""


def real(name: str, value: RealLike, *, allow_inf: bool = False) -> Array:
    """`value` as a float64 array without NaN and, unless allowed, without infinities."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UserError(f"{name} must be real numbers, not {value!r}") from error
    bad = np.isnan(array) if allow_inf else ~np.isfinite(array)
    if bad.any():
        raise UserError(f"{name} must be finite, not {array[bad].flat[0]}")
    return array


def positive(name: str, value: RealLike, *, allow_inf: bool = False) -> Array:
    """`value` as a float64 array of positive numbers."""
    array = real(name, value, allow_inf=allow_inf)
    if (array <= 0).any():
        raise UserError(f"{name} must be positive, not {array[array <= 0].flat[0]}")
    return array


def nonnegative(name: str, value: RealLike, *, allow_inf: bool = False) -> Array:
    """`value` as a float64 array without negative numbers."""
    array = real(name, value, allow_inf=allow_inf)
    if (array < 0).any():
        raise UserError(f"{name} must not be negative, not {array[array < 0].flat[0]}")
    return array


def scalar(array: Array, name: str) -> float:
    """The one number in `array`."""
    if array.ndim:
        raise UserError(f"{name} must be one number, not an array of shape {array.shape}")
    return float(array)


def side(which: str) -> Which:
    """`which`, checked: 'emp' or 'gen'."""
    match which:
        case "emp" | "gen":
            return which
    raise UserError(f"which must be 'emp' or 'gen', not {which!r}")


def broadcast(**arrays: Array) -> tuple[Array, ...]:
    """The arrays in their common shape."""
    try:
        return tuple(np.broadcast_arrays(*arrays.values()))
    except ValueError as error:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise UserError(f"shapes do not broadcast: {shapes}") from error


def quotient(name: str, top: Array, bottom: Array) -> Array:
    """`top / bottom`, refused where it leaves the range of float64."""
    top, bottom = broadcast(numerator=top, denominator=bottom)
    with np.errstate(over="ignore"):
        ratio: Array = np.asarray(top / bottom)
    is_lost = ~np.isfinite(ratio) | ((ratio == 0) & (top > 0))
    if is_lost.any():
        given = f"{top[is_lost].flat[0]} / {bottom[is_lost].flat[0]}"
        raise UserError(f"{name} leaves the range of floats: {given}")
    return ratio


def unwrapped(array: Array) -> FloatOrArray:
    """A float for a zero-dimensional array, the array itself otherwise."""
    return array if array.ndim else float(array)
