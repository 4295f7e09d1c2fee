"""Rounding of fractional master solutions to clusterings: Gentile et al. (2020), section 5.2."""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.column_generation.set_partitioning import PRESENT


def simple_rounding(values: np.ndarray, members: np.ndarray, x: np.ndarray, k: int) -> np.ndarray:
    """Run `SimpleRoundingHeuristic`: choose disjoint columns in descending order of x; return labels (n,).

    Columns are chosen while at least 2k records are unassigned and a disjoint column exists (the paper does
    not mention the second condition). If k to 2k - 1 records remain, they form a cluster. Otherwise each
    remaining record is assigned to the cluster with the nearest centroid (`AddRemainingNodes`).

    Parameters
    ----------
    values : (n, p) array
        Records.
    members : (columns, 2k - 1) int array
        Columns, padded with -1.
    x : (columns,) array
        Values of the columns; ties go to the first column.
    k : int
        Minimum cluster size.
    """
    n = len(values)
    labels = np.full(n, -1, dtype=np.int64)
    clusters = 0
    free = n
    for column in np.argsort(-x, kind="stable"):
        if free < 2 * k:
            break
        cluster = members[column][members[column] >= 0]
        if np.all(labels[cluster] < 0):
            labels[cluster] = clusters
            clusters += 1
            free -= len(cluster)
    rest = np.flatnonzero(labels < 0)
    if k <= len(rest) <= 2 * k - 1:
        labels[rest] = clusters
    elif len(rest):
        chosen = labels >= 0
        sums = np.zeros((clusters, values.shape[1]))
        np.add.at(sums, labels[chosen], values[chosen])
        centroids = sums / np.bincount(labels[chosen], minlength=clusters)[:, None]
        away = ((values[rest, None, :] - centroids[None, :, :]) ** 2).sum(axis=2)
        labels[rest] = np.argmin(away, axis=1)
    return labels


def spanning_tree_roundings(members: np.ndarray, x: np.ndarray, n: int, k: int) -> list[np.ndarray]:
    """Run `RoundingMSTHeuristic`: merge along edges by descending z_ij; return labels (n,) per feasible cap.

    z_ij is the sum of x over the columns that contain both records. The edges are scanned for every cap k + 1
    to 2k - 1 on the cluster size, ties in lexicographic order. Edges with z_ij = 0 are last in the paper's
    order. They are omitted, because no column contains both of their records.
    """
    first, second = _edges(members, x, n)
    roundings = []
    for cap in range(k + 1, 2 * k):
        labels = _glue(first, second, n, cap)
        if np.all(np.bincount(labels)[labels] >= k):
            roundings.append(labels)
    return roundings


def _edges(members: np.ndarray, x: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges i < j with z_ij > 0 in descending order of z_ij."""
    z: dict[int, float] = {}
    for column in np.flatnonzero(x > PRESENT):
        cluster = members[column][members[column] >= 0].tolist()
        for a, i in enumerate(cluster):
            for j in cluster[a + 1 :]:
                z[i * n + j] = z.get(i * n + j, 0.0) + float(x[column])
    codes = np.array(sorted(z), dtype=np.int64)
    # sums that differ only by rounding errors count as ties
    order = np.argsort(-np.round([z[int(code)] for code in codes], 9), kind="stable")
    return codes[order] // n, codes[order] % n


@kernel
def _glue(first, second, n, cap):
    labels = np.arange(n)
    sizes = np.ones(n, dtype=np.int64)
    for e in range(len(first)):
        a, b = labels[first[e]], labels[second[e]]
        if a != b and sizes[a] + sizes[b] <= cap:
            for i in range(n):
                if labels[i] == b:
                    labels[i] = a
            sizes[a] += sizes[b]
    return labels
