"""A lower bound by smaller clusters, where those of k records and more are too many to be priced.

Replace each cluster of s >= k records by all its subsets of t < k records, each to the share of one in
binom(s - 1, t - 1): every record is then in clusters of t to the share of one, and these cost together
s (t - 1) / (t (s - 1)) of what the cluster costs, since each pair of its records is in as many of them. So a
clustering costs at least t (k - 1) / (k (t - 1)) times the relaxed set-partitioning program for t. Cuts on
whole clusters do not hold for such shares and are left out.
"""

from __future__ import annotations

from microguard.sdc.microaggregation.certified.relaxation import Relaxation

#: Records of the smaller clusters, at most: those of a whole file are priced in seconds.
SMALLER = 5
#: Relative distance of bound and master problem at which it ends.
TOLERANCE = 1e-4


def smaller_clusters_bound(relaxation: Relaxation, k: int) -> float:
    """Lower bound on the cost of clusters of at least k by a shared relaxation for fewer, without cuts.

    Minus infinity where the allowance of the relaxation ends before its first bound.
    """
    t = relaxation.columns.k
    relaxation.converge(TOLERANCE)
    return relaxation.lower_bound * t * (k - 1) / (k * (t - 1))
