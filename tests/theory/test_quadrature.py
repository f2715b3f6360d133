"""Quadrature rules and blocks."""

import numpy as np
import pytest

from epigrok.theory.quadrature import gauss_legendre, in_blocks


def test_a_rule_of_n_nodes_is_exact_to_degree_two_n_less_one() -> None:
    nodes, weights = gauss_legendre(5)
    for degree in range(10):
        exact = 0.0 if degree % 2 else 2.0 / (degree + 1)
        assert weights @ nodes**degree == pytest.approx(exact, abs=1e-14)


def test_nobody_can_change_a_shared_rule() -> None:
    nodes, _ = gauss_legendre(3)
    with pytest.raises(ValueError, match="read-only"):
        nodes[0] = 0.0


def test_blocks_change_no_number_and_keep_the_shape() -> None:
    values = np.arange(2.0 * 5000).reshape(2, 5000)
    np.testing.assert_array_equal(in_blocks(lambda x, y: x + y, values, values), 2.0 * values)
