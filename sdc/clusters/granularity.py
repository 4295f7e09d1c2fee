"""Granularity of a numeric variable: the decimal step of its values, to which published means are rounded.

A mean under unequal, published weights discloses more than an unweighted mean. If all values are multiples of
a step, the digits of the mean below that step identify the values and the record of each (integer relations:
Lenstra, Lenstra and Lovász 1982; for three records, enumeration suffices). A mean that is rounded to the step
no longer contains these digits.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

#: Share of the nonzero values that must be multiples of the step. A few values usually have more digits.
MOST = 0.9
#: Steps are 1 and 5 times a power of ten, from the largest magnitude down to 10**-PLACES.
PLACES = 6
#: Distance from a multiple, in steps, that counts as floating-point error. Values without a step are rarely
#: as near to one.
NEAR = 0.01
#: Means of values without a step are rounded to about their standard deviation divided by this. A mean needs
#: no more digits, and values that seem to have no step may still be multiples of, say, one twelfth.
DIGITS = 1000.0


def step_of(values: np.ndarray, deviation: float) -> Fraction:
    """Return the coarsest decimal step of which at least 90 % of the nonzero values are multiples.

    Parameters
    ----------
    values : (n,) float array
        Missing values are NaN. Zeros are ignored, because they are multiples of every step.
    deviation : float
        Standard deviation of the variable. It determines the step if the values have none.

    Returns
    -------
    Fraction
        A positive step: 1 or 5 times a power of ten.
    """
    sizes = np.abs(values[np.isfinite(values) & (values != 0.0)])
    if not len(sizes):
        return Fraction(1)
    for exponent in range(math.floor(math.log10(float(sizes.max()))), -PLACES - 1, -1):
        for digit in (5, 1):
            step = digit * Fraction(10) ** exponent
            scaled = sizes / float(step)
            whole = np.rint(scaled)
            if np.mean((np.abs(scaled - whole) <= NEAR) & (whole > 0.0)) >= MOST:
                return step
    least = deviation / DIGITS if deviation > 0.0 else float(sizes.max()) / DIGITS
    return Fraction(10) ** math.floor(math.log10(least))
