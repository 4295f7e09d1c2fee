"""Orders of combinations in which neighbours are alike: one per variable that varies fastest."""

from __future__ import annotations

import numpy as np

from sdc.nominal.frequency import FrequencyVector, mixed_radix

#: Orders kept for the search: beyond this many variables further orders cost memory, not quality.
_MOST_ORDERS = 12


def sorted_combinations(frequencies: FrequencyVector, fastest: int | None = None) -> np.ndarray:
    """Positions sorted by region, then by variables of ascending number of values, `fastest` last.

    Without `fastest` it is the order in which SAFE goes through the vector (Cost 2023, section 2.2).
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
    """One order per variable that varies fastest, and each combination's place in it.

    Returns
    -------
    orders : (q, m) int32 array, positions in order; every region is one stretch, the same in all
    places : (q, m) int32 array, the inverse of each order
    """
    widest = np.argsort(-frequencies.domain_sizes, kind="stable")[:_MOST_ORDERS]
    orders = np.array([sorted_combinations(frequencies, int(j)) for j in widest], np.int32)
    places = np.empty_like(orders)
    for order, place in zip(orders, places, strict=True):
        place[order] = np.arange(len(frequencies))
    return orders, places
