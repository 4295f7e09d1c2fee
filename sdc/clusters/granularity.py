"""Step to which the mean of a cluster is rounded, derived from the variable's standard deviation.

If the values come from a public list (a pay scale, a tariff), an unrounded mean identifies them, because few
combinations of list values have this mean. If the mean is rounded to a step that does not depend on the list,
many combinations have the same published mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Maximum step as a share of the variable's standard deviation in the file, and of the mean size of the
#: values in the cluster. Rounding therefore costs at most 1 / (12 * 20**2) = 0.02 % of the variable's sum of
#: squares.
SHARE = 1.0 / 20.0


@dataclass(frozen=True)
class Steps:
    """A decimal step for each cluster: ``digits * 10**exponents``.

    Attributes
    ----------
    digits : (m,) int64 array
        1, 2 or 5; 0 if means are not rounded.
    exponents : (m,) int64 array
    """

    digits: np.ndarray
    exponents: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """Return the steps as floats, (m,)."""
        return self.digits * 10.0**self.exponents


def steps_of(values: np.ndarray, labels: np.ndarray, deviation: float) -> Steps:
    """Return the step of each cluster: the largest of 1, 2 or 5 times a power of ten that is at most the
    allowed share.

    Parameters
    ----------
    values : (n,) float array
    labels : (n,) int array
        Cluster of each record, 0 to m - 1.
    deviation : float
        Standard deviation of the variable in the whole file. If it is 0, nothing is rounded.
    """
    sizes = np.bincount(labels, np.abs(values)) / np.bincount(labels)
    most = SHARE * np.minimum(sizes, deviation)
    rounded = most > np.finfo(np.float64).tiny * 10.0
    largest = np.where(rounded, most, 1.0)
    exponents = np.floor(np.log10(largest)).astype(np.int64)
    exponents -= 10.0**exponents > largest
    leading = largest / 10.0**exponents
    digits = np.where(leading >= 5.0, 5, np.where(leading >= 2.0, 2, 1))
    return Steps(np.where(rounded, digits, 0), exponents)
