"""The decomposition of a data set, and what a covariance must be."""

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh, svd

from epigrok.errors import UserError
from epigrok.theory.inputs import Array

_PSD_TOLERANCE = 1e-12  # of the largest entry: eigenvalues this far below zero are rounding


def decomposed(X: Array, y: Array) -> tuple[Array, Array, Array, float]:
    """Singular values of X, ascending and d of them, right vectors, y along the left ones, rest."""
    n, d = X.shape
    left, found, right = svd(X, full_matrices=n < d, check_finite=False)
    singular, targets = np.zeros(d), np.zeros(d)
    rank = len(found)
    singular[d - rank :] = found[::-1]
    projections = left.T[:rank] @ y
    targets[d - rank :] = projections[::-1]
    rest = y - left[:, :rank] @ projections
    return singular, np.ascontiguousarray(right[::-1].T), targets, float(rest @ rest)


def require_covariance(matrix: Array, name: str = "Sigma0") -> None:
    """Refuse a matrix that is not symmetric and positive semi-definite up to rounding."""
    tolerance = _PSD_TOLERANCE * max(float(np.abs(matrix).max()), np.finfo(np.float64).tiny)
    asymmetry = float(np.abs(matrix - matrix.T).max())
    if asymmetry > tolerance:
        raise UserError(f"{name} must be symmetric; it differs from its transpose by {asymmetry}")
    try:
        cholesky(matrix + tolerance * len(matrix) * np.eye(len(matrix)), check_finite=False)
    except LinAlgError as error:
        lowest = float(eigh(matrix, eigvals_only=True, subset_by_index=(0, 0))[0])
        message = f"{name} must be positive semi-definite; its lowest eigenvalue is {lowest}"
        raise UserError(message) from error
