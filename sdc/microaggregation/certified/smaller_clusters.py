"""Lower bound from smaller clusters, used if clusters of k or more records are too large for pricing.

Replace each cluster of s >= k records by all its subsets of t < k records, each with the value 1 / binom(s -
1, t - 1). Then the values of the subsets that contain a record sum to 1. Each pair of records is in the same
number of subsets, so the subsets together cost s (t - 1) / (t (s - 1)) times as much as the cluster. A
clustering therefore costs at least t (k - 1) / (k (t - 1)) times the value of the relaxed set-partitioning
program for t. Cuts that are valid for clusterings are not valid for these fractional values, so none are
used.
"""

from __future__ import annotations

from microguard.sdc.microaggregation.certified.relaxation import ROUND_TOLERANCE, Relaxation

#: Maximum size of the smaller clusters; with it, pricing of a whole file takes seconds.
SMALLER = 5


def smaller_clusters_bound(relaxation: Relaxation, k: int) -> float:
    """Return a lower bound on the cost of clusters of at least k records, from a relaxation with smaller
    clusters.

    The relaxation must be `shared` and without cuts. The result is minus infinity if its allowance is
    exhausted before the first bound.
    """
    t = relaxation.columns.k
    relaxation.converge(ROUND_TOLERANCE)
    return relaxation.lower_bound * t * (k - 1) / (k * (t - 1))
