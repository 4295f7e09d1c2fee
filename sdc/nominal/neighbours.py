"""Similar key combinations: sort orders whose neighbours are similar, and nearest neighbours."""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.nominal.frequency import FrequencyVector, mixed_radix
from microguard.sdc.nominal.points import Points, distance

#: Maximum number of sort orders for the search. More orders need more memory and do not improve the results.
_MOST_ORDERS = 12


def sorted_combinations(frequencies: FrequencyVector, fastest: int | None = None) -> np.ndarray:
    """Return the positions sorted by region, then by the variables in ascending order of their number of
    values.

    If given, the variable `fastest` is the last sort key. Without it, this is the order in which SAFE
    processes the vector (Cost 2023, section 2.2).
    """
    by_size = [int(j) for j in np.argsort(frequencies.domain_sizes, kind="stable")]
    if fastest is not None:
        by_size.remove(fastest)
        by_size.append(fastest)
    regions = frequencies.region_of()
    columns = [regions, *(frequencies.codes[:, j] for j in by_size)]
    sizes = [int(regions.max(initial=0)) + 1, *(int(frequencies.domain_sizes[j]) for j in by_size)]
    key, _ = mixed_radix(columns, sizes, len(frequencies))
    return np.argsort(key, kind="stable")


def similarity_orders(frequencies: FrequencyVector) -> tuple[np.ndarray, np.ndarray]:
    """Return sort orders of the key combinations; each has another variable as its last sort key.

    Returns
    -------
    orders : (q, m) int32 array
        Sorted positions. Each region occupies the same consecutive range in all orders.
    places : (q, m) int32 array
        Inverse permutation of each order.
    """
    widest = np.argsort(-frequencies.domain_sizes, kind="stable")[:_MOST_ORDERS]
    orders = np.array([sorted_combinations(frequencies, int(j)) for j in widest], np.int32)
    places = np.empty_like(orders)
    for order, place in zip(orders, places, strict=True):
        place[order] = np.arange(len(frequencies))
    return orders, places


def nearest_combinations(points: Points, most: int) -> np.ndarray:
    """Return the nearest other points of each point, (u, min(most, u - 1)), nearest first, ties sorted by
    number.
    """
    return _nearest(points, min(most, len(points.codes) - 1), points.diameter)


@kernel
def _nearest(points: Points, width: int, diameter: int) -> np.ndarray:
    count = len(points.codes)
    near = np.empty((count, width), np.int64)
    apart = np.empty(count, np.int64)
    for i in range(count):
        first = np.zeros(diameter + 2, np.int64)  # counting sort: rank of the next point at each distance
        for j in range(count):
            apart[j] = distance(points, i, j)
            if j != i:
                first[apart[j] + 1] += 1
        first = np.cumsum(first)
        for j in range(count):
            if j != i:
                rank = first[apart[j]]
                first[apart[j]] += 1
                if rank < width:
                    near[i, rank] = j
    return near
