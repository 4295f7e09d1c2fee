"""Correlated noise: normal noise whose covariance is proportional to that of the data.

Kim 1986, A method for limiting disclosure in microdata based on random noise and transformation (ASA, Survey
Research Methods Section). Tendick and Matloff 1994, A modified random perturbation method for database
security (ACM TODS 19). Means and correlations are kept in expectation; the covariance grows by 1 + c, or is
kept if values are then shrunk towards their means by sqrt(1 + c).
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from scipy.special import ndtri

#: Smallest share of a variance that is not taken for zero: below it a variable follows from those before it.
LEAST_PIVOT = 1e-10


def factor(covariance: np.ndarray) -> np.ndarray:
    """Return a lower triangular L with L L' = covariance (Cholesky); linear dependence is allowed.

    Parameters
    ----------
    covariance : (p, p) array
        Symmetric. A variable that follows from those before it has no noise of its own.

    Raises
    ------
    ShapeMismatch
    """
    matrix = np.asarray(covariance, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ShapeMismatch(f"covariance: expected a square matrix, found {matrix.shape}")
    lower = np.zeros_like(matrix)
    for j in range(len(matrix)):
        pivot = matrix[j, j] - (lower[j, :j] ** 2).sum()
        if pivot <= LEAST_PIVOT * max(matrix[j, j], 0.0):
            continue
        lower[j, j] = np.sqrt(pivot)
        lower[j + 1 :, j] = (matrix[j + 1 :, j] - lower[j + 1 :, :j] @ lower[j, :j]) / lower[j, j]
    return lower


def with_noise(
    values: np.ndarray, correlation_factor: np.ndarray, uniforms: np.ndarray, share: float, *, keep: bool
) -> np.ndarray:
    """Return values with noise, in the units of the values.

    Parameters
    ----------
    values : (n, p) array
        Standardised: mean 0 and variance 1 over the file. A missing value is NaN and stays so.
    correlation_factor : (p, p) array
        `factor` of the correlations.
    uniforms : (n, p) array
        Draws in [0, 1), multiples of 2^-53.
    share : float
        c, above 0.
    keep : bool
        Whether the expected covariance is kept; else it is 1 + c times the original one.

    Raises
    ------
    InvalidParameter, ShapeMismatch
    """
    if not share > 0:
        raise InvalidParameter(f"share: expected a number above 0, found {share!r}")
    if values.shape != uniforms.shape or correlation_factor.shape != (values.shape[1],) * 2:
        raise ShapeMismatch(
            f"expected as many draws as values and a square factor, found {values.shape} values, "
            f"{uniforms.shape} draws and a factor {correlation_factor.shape}"
        )
    normal = ndtri(uniforms + 2.0**-54)
    noisy = np.array(values, np.float64)
    size = np.sqrt(share)
    for j, row in enumerate(correlation_factor):
        for i in range(j + 1):  # not by a matrix product, whose rounding depends on the number of records
            noisy[:, j] += size * row[i] * normal[:, i]
    return noisy / np.sqrt(1 + share) if keep else noisy
