"""One coordinate: the optimal partition, by the shortest path over the sorted values.

Hansen and Mukherjee 2003, "A polynomial algorithm for optimal univariate microaggregation".
"""

from __future__ import annotations

from sdc.errors import UnsupportedCombination
from sdc.microaggregation.clustering import Clustering
from sdc.microaggregation.heuristics.projections import labels_along
from sdc.microaggregation.heuristics.univariate import optimal
from sdc.microaggregation.records import Records
from sdc.stop import Deadline


def carries(records: Records) -> bool:
    """Whether the shortest path is optimal: one coordinate, and equal weights.

    With unequal weights an optimal cluster need not be a run of the sorted values.
    """
    return records.values.shape[1] == 1 and not records.weighted


def solve(records: Records, k: int, *, deadline: Deadline, seed: int) -> Clustering:
    """The optimum, proved; no randomness, no clock."""
    if not carries(records):
        raise UnsupportedCombination(
            "univariate-optimal clusters one numeric variable without record weights, "
            f"found {records.values.shape[1]} coordinates"
        )
    labels = labels_along(records.values[:, 0], k, optimal)
    sse = Clustering.of(records, labels, "univariate-optimal").sse
    return Clustering.of(
        records,
        labels,
        "univariate-optimal",
        lower_bound=sse,
        bound_kind="shortest path",
        stopped_by="proof",
    )
