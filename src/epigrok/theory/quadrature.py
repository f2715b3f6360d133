"""Gauss-Legendre rules, computed once each, and many integrals in bounded memory."""

from collections.abc import Callable
from functools import cache

import numpy as np

from epigrok.theory.inputs import Array

_BLOCK = 4096  # integrals done at once: 6 MB per temporary of 192 nodes


@cache
def gauss_legendre(num_nodes: int) -> tuple[Array, Array]:
    """Nodes and weights of the rule on [-1, 1]; read-only, as every caller shares them."""
    nodes, weights = np.polynomial.legendre.leggauss(num_nodes)
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights


def in_blocks(kernel: Callable[..., Array], *arrays: Array) -> Array:
    """`kernel` of flat arrays, applied to arrays of one common shape a block at a time."""
    flat = [array.reshape(-1) for array in arrays]
    values = np.empty(flat[0].shape)
    for start in range(0, values.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        values[block] = kernel(*(array[block] for array in flat))
    return values.reshape(arrays[0].shape)
