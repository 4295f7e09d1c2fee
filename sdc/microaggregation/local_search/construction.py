"""Initial partitions of a search: MDAV of the whole file or of blocks, and clusters of equal records.

MDAV evaluates all pairs of a small file. A large file is first divided into blocks of near records. If many
records repeat, a second partition is constructed: records that occur at least k times form clusters of equal
records, which cost nothing, and MDAV clusters all other records. The cheaper partition is used.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.heuristics.mdav import cluster_by_mdav, new_free
from microguard.sdc.microaggregation.principal_cuts import cut_into_blocks
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.microaggregation.sse import sum_of_squares

#: Number of records per block of MDAV. Larger blocks would take longer than the local search.
BLOCK = 250
#: Maximum n^2 / k (order of its work) for which MDAV runs on the whole file: half a second, or 10,000 records
#: at k = 3.
WHOLE_FILE = 35_000_000
#: Minimum share of records that equal at least k - 1 others for computing a second partition. Below this
#: share, the second partition takes as long as the first, and its loss is higher as often as lower, by up to
#: 2 %.
FEW_REPEAT = 0.02


Blocks = tuple[np.ndarray, np.ndarray]


def divide(records: Records, k: int) -> Blocks:
    """Divide the records into blocks of near records; return their positions and the block offsets."""
    return cut_into_blocks(records.values, BLOCK, k)


def initial_labels(records: Records, content_ids: np.ndarray, blocks: Blocks, k: int) -> np.ndarray:
    """Return the labels of the cheaper initial partition, (n,) int64 from 0; clusters have k to 2k - 1
    records.

    Parameters
    ----------
    records : Records
        At least k records.
    content_ids : (n,) int64 array
        Number of each distinct record, see `deduplicate`.
    blocks : tuple of arrays
        Blocks as `divide` returns them.
    k : int
    """
    labels = _mdav(records, blocks, k)
    by_content = _by_content(records, content_ids, k)
    if by_content is None:
        return labels
    costs = [sum_of_squares(records.values, records.weights, one) for one in (labels, by_content)]
    return labels if costs[0] <= costs[1] else by_content


def _by_content(records: Records, content_ids: np.ndarray, k: int) -> np.ndarray | None:
    """Cluster records that occur at least k times by content and the others by MDAV; return None if few
    records repeat.

    If fewer than k other records remain, the records with the nearest content are clustered with them.
    """
    count = np.bincount(content_ids)
    alone = count[content_ids] >= k
    if np.count_nonzero(alone) <= FEW_REPEAT * len(alone):
        return None
    rest = np.flatnonzero(~alone)
    if 0 < len(rest) < k:
        away = ((records.values - records.values[rest[0]]) ** 2).sum(axis=1)
        nearest = content_ids[np.flatnonzero(alone)[np.argmin(away[alone])]]
        alone &= content_ids != nearest
        rest = np.flatnonzero(~alone)
    labels = np.empty(len(records), dtype=np.int64)
    order = np.flatnonzero(alone)
    order = order[np.argsort(content_ids[order], kind="stable")]
    _, first, repeats = np.unique(content_ids[order], return_index=True, return_counts=True)
    clusters = repeats // k  # number of clusters for each content; the last cluster receives the remainder
    offset = np.concatenate([[0], np.cumsum(clusters)])
    place = np.arange(len(order)) - np.repeat(first, repeats)
    labels[order] = np.repeat(offset[:-1], repeats) + np.minimum(place // k, np.repeat(clusters - 1, repeats))
    if len(rest):
        others = records.take(rest)
        labels[rest] = offset[-1] + _mdav(others, divide(others, k), k)
    return labels


def _mdav(records: Records, blocks: Blocks, k: int) -> np.ndarray:
    """Run MDAV on the whole file if it is small, otherwise within blocks."""
    n = len(records)
    order, offsets = (np.arange(n), np.array([0, n])) if n * n <= WHOLE_FILE * k else blocks
    labels = np.empty(n, dtype=np.int64)
    _mdav_by_block(records.values, records.weights, order, offsets, k, labels)
    return labels


@kernel
def _mdav_by_block(values, weights, order, offsets, k, labels):
    free = new_free(np.diff(offsets).max(), values.shape[1], k)
    label = 0
    for b in range(len(offsets) - 1):
        block = order[offsets[b] : offsets[b + 1]]
        label = cluster_by_mdav(values, weights, block, k, labels, label, free)
