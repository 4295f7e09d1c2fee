"""The step that the values of a variable have in practice, which their means are rounded to.

A mean with unequal, published weights tells more than one of equal weights: where every value is a multiple
of some step, its digits below that step say which values the records have, and which record has which
(integer relations: Lenstra, Lenstra and Lovász 1982; for three records trying all values will do). Rounded to
the step it leaves as many combinations of values as it has steps to choose among.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

#: Share of the values other than zero that a step must divide: some are always written otherwise.
MOST = 0.9
#: Steps are 5 and 10 times powers of ten, from the largest magnitude down to 10 to the minus this.
PLACES = 6
#: Distance from a multiple, in steps, that is an error of floats; few values without a step come as near.
NEAR = 0.01
#: Values without any step are rounded to no less than their deviation over this: a mean needs no more digits,
#: and what looks as if it had none may be multiples of a twelfth.
DIGITS = 1000.0


def step_of(values: np.ndarray, deviation: float) -> Fraction:
    """The coarsest decimal step that nine in ten values are multiples of.

    Parameters
    ----------
    values : (n,) float array
        NaN where missing; zeros, which every step divides, are left out.
    deviation : float
        Standard deviation of the variable: values that have no step are given one by it.

    Returns
    -------
    Fraction
        Above 0: 5 or 10 times a power of ten.
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
