"""The rule integrates the Marchenko-Pastur law."""

import numpy as np
import pytest

from epigrok.theory.spectral_rule import atom_mass, log_lower_edge, lower_edge, tilted_rule


@pytest.mark.parametrize("lam", [1e-6, 0.3, 0.999, 1.0, 1.7, 50.0])
def test_without_a_tilt_it_has_the_laws_moments(lam: float) -> None:
    rule = tilted_rule(np.array(lam), np.array(0.0))
    weights = rule.weights * rule.scale[..., None]
    mass = weights.sum()
    # With the atom the mass is one; the first two moments are 1 and 1 + lambda.
    assert mass + atom_mass(np.array(lam)) == pytest.approx(1.0, rel=1e-13)
    assert weights @ rule.nu == pytest.approx(1.0, rel=1e-12)
    assert weights @ rule.nu**2 == pytest.approx(1.0 + lam, rel=1e-12)


def test_the_edge_keeps_its_digits_near_one() -> None:
    lam = np.array(1.0 + 1e-9)
    assert lower_edge(lam) == pytest.approx(2.5e-19, rel=1e-6)
    assert log_lower_edge(lam) == pytest.approx(np.log(2.5e-19), rel=1e-8)
    assert lower_edge(np.array(1.0)) == 0.0
