"""Probability that the units of a class have too few distinct sensitive values, computed without reading
these values.

A register withholds the sensitive values of a batch of new records if the batch has too few distinct values.
A reader who sees that values are missing must not be able to conclude this. Some batches with enough values
are therefore withheld as well, by a random draw. Its probability depends only on the number of units and on
the shares of the previously published values.

The number of distinct values is modelled by a Dirichlet-multinomial sample (Mosimann 1962), because units
that enter together resemble each other.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.errors import InvalidParameter
from scipy.special import gammaln

#: Intraclass correlation of the values of units that enter together; a usual value for clusters in household
#: surveys.
CORRELATION = 0.05
#: Number of batches with enough values that are withheld for each batch with too few, so that withholding
#: discloses little.
DECOY_BATCHES = 2.0
#: Maximum size of a batch. Larger batches count as having this many units, which overestimates the
#: probability.
MOST_UNITS = 400


def too_few_values_probability(shares: np.ndarray, units: int, least: int) -> float:
    """Return the probability that units drawn at random have fewer than `least` distinct values.

    Parameters
    ----------
    shares : (v,) float array
        Shares of the values, at least 0. 1 minus their sum is the share of missing values, which do not count
        as a value.
    units : int
    least : int
        Required number of distinct values.

    Raises
    ------
    InvalidParameter
        If a share is negative, or the shares sum to more than 1.
    """
    shares = np.asarray(shares, dtype=float)
    if shares.min(initial=0.0) < 0.0 or shares.sum() > 1.0 + 1e-9:
        raise InvalidParameter("shares: expected numbers of at least 0 with a sum of at most 1, found others")
    if units < least:
        return 1.0
    n = min(units, MOST_UNITS)
    concentration = 1.0 / CORRELATION - 1.0
    missing = max(0.0, 1.0 - float(shares.sum()))
    # weights[j, m]: weight of samples of m units with j distinct values, over the values processed so far
    weights = np.zeros((least, n + 1))
    weights[0] = _weights(concentration * missing, n)
    for share in shares[shares > 0.0]:
        of_value = _weights(concentration * float(share), n)
        of_value[0] = 0.0
        for j in range(least - 1, 0, -1):
            weights[j] += np.convolve(weights[j - 1], of_value)[: n + 1]
    return float(min(1.0, weights[:, n].sum() / _weights(concentration, n)[n]))


def withholding_probability(too_few: float) -> float:
    """Return the probability with which a batch that has enough distinct values is withheld.

    One in 1 + `DECOY_BATCHES` of the withheld batches has too few values.

    Parameters
    ----------
    too_few : float
        Probability that a batch has too few values.
    """
    return 1.0 if too_few >= 1.0 else min(1.0, DECOY_BATCHES * too_few / (1.0 - too_few))


def _weights(alpha: float, n: int) -> np.ndarray:
    """Return the weights of 0 to n units with the same value, (n + 1,): rising factorial of alpha over m!."""
    if alpha <= 0.0:
        return np.append(1.0, np.zeros(n))
    m = np.arange(n + 1)
    return np.exp(gammaln(alpha + m) - gammaln(alpha) - gammaln(m + 1.0))
