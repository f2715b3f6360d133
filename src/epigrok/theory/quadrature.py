"""Gauss-Legendre rules, computed once each."""

from functools import cache

import numpy as np

from epigrok.theory.inputs import Array


@cache
def gauss_legendre(num_nodes: int) -> tuple[Array, Array]:
    """Nodes and weights of the rule on [-1, 1]; read-only, as every caller shares them."""
    nodes, weights = np.polynomial.legendre.leggauss(num_nodes)
    weights *= 2.0 / weights.sum()  # NumPy's weights of long rules add up to 2 only to 1e-14
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights
