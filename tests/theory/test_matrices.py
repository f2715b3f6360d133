"""The decomposition of a data set, and what a covariance must be."""

import numpy as np
import pytest

from epigrok.errors import UserError
from epigrok.theory.matrices import decomposed, require_covariance


@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (5, 5)])
def test_the_parts_make_up_the_data_set(shape: tuple[int, int]) -> None:
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=shape), generator.normal(size=shape[0])
    singular, right, targets, rest = decomposed(X, y)
    assert np.all(np.diff(singular) >= 0.0)
    np.testing.assert_allclose(right @ np.diag(singular**2) @ right.T, X.T @ X, atol=1e-12)
    np.testing.assert_allclose(right @ (singular * targets), X.T @ y, atol=1e-12)
    assert rest == pytest.approx(y @ y - targets @ targets, abs=1e-12)


def test_what_is_no_covariance_is_refused_with_the_reason() -> None:
    require_covariance(np.eye(3))
    require_covariance(np.zeros((2, 2)))
    with pytest.raises(UserError, match="must be symmetric"):
        require_covariance(np.array([[1.0, 0.5], [0.0, 1.0]]))
    with pytest.raises(UserError, match="its lowest eigenvalue is -1"):
        require_covariance(np.diag([1.0, -1.0]))
