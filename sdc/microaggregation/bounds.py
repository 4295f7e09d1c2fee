"""Lower bounds on the SSE that need no solver."""

from __future__ import annotations

import numpy as np
from microguard.sdc.arguments import check_records
from microguard.sdc.microaggregation.distinct_rows import grid
from microguard.sdc.microaggregation.nearest_records import nearest_records

#: Maximum number of rounding errors of a coordinate before it is rounded to its grid: by centring, by two
#: divisions for the scale, and by the variable weight.
ROUNDINGS = 4
#: Upper bound on the relative rounding error of the sums of squares and of the sums in a lower bound.
ARITHMETIC = 1e-12


def nearest_neighbour_bound(values: np.ndarray, k: int, *, reach: np.ndarray | float = np.inf) -> float:
    """Return a weak lower bound on the SSE of every clustering of a file, from the distances to nearest
    neighbours.

    The SSE of a cluster of size s is the sum over its members of 1 / (2s) times the squared distances to the
    s - 1 others, which are at least the s - 1 smallest distances. This lower bound of a member does not
    decrease in s: it is the mean of a growing prefix of an ascending sequence, times (s - 1) / (2 s).
    Therefore s = k gives a bound for every size.

    Parameters
    ----------
    values : (n, p) float array
        Points without weights, n >= k.
    k : int
        Minimum cluster size.
    reach : (n,) float array, optional
        If the points are a block of a file: a lower bound on the distance of each point to all records
        outside the block. Then no neighbour in the file is nearer than the minimum of both distances, and the
        bounds of all blocks add up to a bound for the file.

    Returns
    -------
    float
        Sum over records of 1 / (2k) times the squared distances to the k - 1 nearest neighbours.
    """
    check_records(len(values), k)
    if values.shape[1] == 0:
        return 0.0  # without variables all records are equal
    squares, _ = nearest_records(values, k - 1)
    least = np.minimum(squares, np.square(np.broadcast_to(reach, len(values)))[:, None])
    return less_rounding(float(np.sum(least) / (2 * k)), values)


def less_rounding(bound: float, values: np.ndarray) -> float:
    """Convert a lower bound on the SSE of rounded coordinates to a (smaller) bound for the exact coordinates.

    Let e be the vector of all rounding errors. sqrt(SSE) of a clustering is the distance to the nearest point
    at which the records of each cluster are equal, so rounding changes it by at most the length of e. This
    matters if a few records are so extreme that the other records differ only in the last digits of their
    coordinates.

    Parameters
    ----------
    bound : float
        Lower bound for the rounded coordinates, with a relative error of at most `ARITHMETIC`.
    values : (n, p) float array
        Coordinates, each rounded at most `ROUNDINGS` times and then to its grid, by at most half a step. The
        step is computed again from the rounded coordinates, and may then be half as large.
    """
    eps = float(np.finfo(np.float64).eps)
    steps = np.array([grid(ordered) for ordered in np.sort(values, axis=0).T])
    length = ROUNDINGS * eps * float(np.sqrt(np.sum(values**2)))
    length += float(np.sqrt(len(values) * np.sum(steps**2)))
    return max(0.0, float(np.sqrt(max(0.0, bound) * (1.0 - ARITHMETIC))) - length) ** 2
