"""Lower bounds on the SSE that need no solver."""

from __future__ import annotations

import numpy as np
from microguard.sdc.arguments import check_records
from microguard.sdc.microaggregation.nearest_records import nearest_records

#: Roundings of a coordinate at most: difference from the origin, scale, spread, weight of the variable.
ROUNDINGS = 4
#: Relative error of sums of squares and of the sums that a bound is made of, generously.
ARITHMETIC = 1e-12


def nearest_neighbour_bound(values: np.ndarray, k: int, *, reach: np.ndarray | float = np.inf) -> float:
    """A weak lower bound on the SSE of any clustering of a whole file, by nearest neighbours.

    A cluster of size s costs the sum over its members of 1 / (2s) times the squared distances to the
    others, and each has s - 1 of them, none nearer than its s - 1 nearest neighbours. Per member, 1 / (2s)
    times the s - 1 least distances does not fall as s grows (the average of a growing prefix of an
    ascending sequence, times (s - 1) / s), so that s = k gives a bound for every size.

    Parameters
    ----------
    values : (n, p) float array
        Points without weights, at least k.
    k : int
        Least cluster size.
    reach : (n,) float array, optional
        Where the points are a part of the file: a distance within which no record of the rest lies. A
        neighbour is then at least as far as the nearer of both; the bounds of the parts add up to one for
        the file.

    Returns
    -------
    float
        Sum over records of 1 / (2k) times the squared distances to the k - 1 nearest neighbours.
    """
    check_records(len(values), k)
    if values.shape[1] == 0:
        return 0.0  # no variables: all records are alike
    squares, _ = nearest_records(values, k - 1)
    least = np.minimum(squares, np.square(np.broadcast_to(reach, len(values)))[:, None])
    return less_rounding(float(np.sum(least) / (2 * k)), values)


def less_rounding(bound: float, values: np.ndarray) -> float:
    """A lower bound on the SSE of coordinates, made one on the SSE of what they were rounded from.

    With e the vector of all roundings, sqrt(SSE) of any clustering changes by at most its length: it is a
    distance, to the nearest point at which all records of a cluster are equal. That counts where a few
    records lie so far out that the others' differences are lost in their last digits.

    Parameters
    ----------
    bound : float
        Holds of the coordinates, up to `ARITHMETIC`.
    values : (n, p) float array
        Coordinates, each rounded at most `ROUNDINGS` times.
    """
    eps = float(np.finfo(np.float64).eps)
    length = ROUNDINGS * eps * float(np.sqrt(np.sum(values**2)))
    return max(0.0, float(np.sqrt(max(0.0, bound) * (1.0 - ARITHMETIC))) - length) ** 2
