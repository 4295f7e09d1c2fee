"""Clusterings to start a search from: MDAV, of the whole file or of blocks, and clusters of equal records.

MDAV looks at all pairs of a small file; a large one is cut into blocks of near records first. Where records
repeat, a second start puts those that are equal at least k times into clusters of their own, which cost
nothing, and clusters the others; the cheaper start counts.
"""

from __future__ import annotations

import numpy as np

from sdc.kernels.compile import kernel
from sdc.microaggregation.heuristics.mdav import cluster_by_mdav
from sdc.microaggregation.principal_cuts import cut_into_blocks
from sdc.microaggregation.records import Records
from sdc.microaggregation.sse import sum_of_squares

#: Records per block of MDAV: larger ones cost more than the local search afterwards.
BLOCK = 250
#: Up to this many records MDAV takes the whole file: half a second's work.
WHOLE_FILE = 10_000


def start(records: Records, contents: np.ndarray, k: int) -> np.ndarray:
    """Labels of the cheaper start, (n,) int64, 0 to m - 1, clusters of k to 2k - 1 records.

    Parameters
    ----------
    records : Records
        Near ones together (`arrange`).
    contents : (n,) int64 array
        Number of each record's content (`number_contents`).
    k : int
    """
    labels = _mdav(records, k)
    by_content = _by_content(records, contents, k)
    if by_content is None:
        return labels
    costs = [sum_of_squares(records.values, records.weights, one) for one in (labels, by_content)]
    return labels if costs[0] <= costs[1] else by_content


def arrange(records: Records, k: int) -> np.ndarray:
    """Positions of the records block after block, near ones together."""
    return cut_into_blocks(records.values, BLOCK, k)[0]


def number_contents(records: Records) -> np.ndarray:
    """Number of each record's content, (n,) int64; equal records stand together (`Records.of`)."""
    fresh = np.zeros(len(records), dtype=np.int64)
    for coordinate in records.values.T:
        fresh[1:] |= coordinate[1:] != coordinate[:-1]
    return np.cumsum(fresh)


def _by_content(records: Records, contents: np.ndarray, k: int) -> np.ndarray | None:
    """Equal records in clusters of their own where there are k, the others by MDAV; None without such."""
    frequent = np.bincount(contents)[contents] >= k
    rest = np.flatnonzero(~frequent)
    if not np.any(frequent) or 0 < len(rest) < k:
        return None
    labels = np.empty(len(records), dtype=np.int64)
    order = np.flatnonzero(frequent)
    order = order[np.argsort(contents[order], kind="stable")]
    _, first, count = np.unique(contents[order], return_index=True, return_counts=True)
    place = np.arange(len(order)) - np.repeat(first, count)
    clusters = count // k  # of each content; the last one takes what is left over
    offset = np.concatenate([[0], np.cumsum(clusters)])
    labels[order] = np.repeat(offset[:-1], count) + np.minimum(place // k, np.repeat(clusters - 1, count))
    if len(rest):
        labels[rest] = offset[-1] + _mdav(records.take(rest), k)
    return labels


def _mdav(records: Records, k: int) -> np.ndarray:
    """MDAV of the whole file where it is small, else within blocks."""
    n = len(records)
    order, offsets = cut_into_blocks(records.values, n if n <= WHOLE_FILE else BLOCK, k)
    labels = np.empty(n, dtype=np.int64)
    labels[order] = _mdav_by_block(records.values[order], records.weights[order], offsets, k)
    return labels


@kernel
def _mdav_by_block(values, weights, offsets, k):
    labels = np.empty(len(values), dtype=np.int64)
    label = 0
    for b in range(len(offsets) - 1):
        start, stop = offsets[b], offsets[b + 1]
        across = values[start:stop].T.copy()
        label = cluster_by_mdav(across, weights[start:stop], k, labels[start:stop], label)
    return labels
