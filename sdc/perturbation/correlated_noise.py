"""Correlated noise: normal noise whose covariance is proportional to the covariance of the data.

Kim 1986, A method for limiting disclosure in microdata based on random noise and transformation (ASA, Survey
Research Methods Section). Tendick and Matloff 1994, A modified random perturbation method for database
security (ACM TODS 19). Means and correlations are kept in expectation; the covariance is multiplied by 1 + c,
or is kept if the values are afterwards shrunk towards their means by the factor sqrt(1 + c).
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from scipy.special import ndtri

#: Minimum share of a variance that counts as positive. Below it, a variable counts as a linear combination of
#: the variables before it.
LEAST_PIVOT = 1e-10


#: Maximum difference between L L' and the correlations for which the correlations count as positive
#: semi-definite.
MOST_RESIDUAL = 1e-4
#: Correlations that are not positive semi-definite are shrunk in steps of 1 / this number.
SHRINKS = 1 << 20


def definite(correlations: np.ndarray) -> np.ndarray:
    """Shrink correlations towards 0 by the least common factor that makes them positive semi-definite.

    Correlations computed from the records in which both values are present need not be positive semi-definite
    (Higham, Strabic and Sego 2016, Restoring definiteness via shrinking, SIAM Review 58). The diagonal does
    not change.

    Parameters
    ----------
    correlations : (p, p) array
        Symmetric; 1 or 0 on the diagonal.
    """
    diagonal = np.diag(np.diag(correlations))

    def shrunk(steps: int) -> np.ndarray:
        return np.asarray(diagonal + (1 - steps / SHRINKS) * (correlations - diagonal))

    low, high = 0, SHRINKS
    while low < high:
        middle = 0 if high == SHRINKS and low == 0 else (low + high) // 2
        if _residual(shrunk(middle)) <= MOST_RESIDUAL:
            high = middle
        else:
            low = middle + 1
    return shrunk(high)


def _residual(matrix: np.ndarray) -> float:
    """Return the largest difference between L L' and the matrix."""
    lower = factor(matrix).tolist()
    return max(
        (
            abs(_product(lower[i], lower[j], j + 1) - float(matrix[i, j]))
            for i in range(len(lower))
            for j in range(i + 1)
        ),
        default=0.0,
    )


def _product(one: list[float], other: list[float], terms: int) -> float:
    """Sum products from first to last, so that the result is equal on every machine."""
    total = 0.0
    for a, b in zip(one[:terms], other[:terms], strict=True):
        total += a * b
    return total


def factor(covariance: np.ndarray) -> np.ndarray:
    """Return a lower triangular L with L L' = covariance (Cholesky); linear dependence is allowed.

    Sums are computed in a fixed order, unlike those of BLAS, so L is the same on every machine.

    Parameters
    ----------
    covariance : (p, p) array
        Symmetric. A variable that is a linear combination of the variables before it gets no additional
        noise.

    Raises
    ------
    ShapeMismatch
    """
    matrix = np.asarray(covariance, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ShapeMismatch(f"covariance: expected a square matrix, found {matrix.shape}")
    p, given = len(matrix), matrix.tolist()
    lower = [[0.0] * p for _ in range(p)]
    for j in range(p):
        pivot = given[j][j] - _product(lower[j], lower[j], j)
        if pivot <= LEAST_PIVOT * max(given[j][j], 0.0):
            continue
        lower[j][j] = sqrt(pivot)
        for i in range(j + 1, p):
            lower[i][j] = (given[i][j] - _product(lower[i], lower[j], j)) / lower[j][j]
    return np.array(lower, np.float64).reshape(p, p)


def with_noise(
    values: np.ndarray, correlation_factor: np.ndarray, uniforms: np.ndarray, share: float, *, keep: bool
) -> np.ndarray:
    """Return the values plus noise, in the units of the values.

    Parameters
    ----------
    values : (n, p) array
        Standardised values: mean 0 and variance 1 over the file. A missing value is NaN and remains NaN.
    correlation_factor : (p, p) array
        `factor` of the correlations.
    uniforms : (n, p) array
        Draws in [0, 1), multiples of 2^-53.
    share : float
        c, above 0.
    keep : bool
        Whether the expected covariance is kept; otherwise it is 1 + c times the original covariance.

    Raises
    ------
    InvalidParameter, ShapeMismatch
    """
    if not share > 0:
        raise InvalidParameter(f"share: expected a number above 0, found {share!r}")
    if values.shape != uniforms.shape or correlation_factor.shape != (values.shape[1],) * 2:
        raise ShapeMismatch(
            f"draws: expected as many as values, and a square factor; found {values.shape} values, "
            f"{uniforms.shape} draws and a factor {correlation_factor.shape}"
        )
    normal = ndtri(uniforms + 2.0**-54)
    noisy = np.array(values, np.float64)
    size = np.sqrt(share)
    for j, row in enumerate(correlation_factor):
        for i in range(j + 1):  # no matrix product, because its rounding depends on the number of records
            noisy[:, j] += size * row[i] * normal[:, i]
    return noisy / np.sqrt(1 + share) if keep else noisy
