"""Optimal partition of one variable, by a shortest path over the sorted values.

Hansen and Mukherjee 2003, "A polynomial algorithm for optimal univariate microaggregation". The path uses the
original values. Standardised values lose the differences between ordinary values if codes for missing values
are extreme.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from microguard.sdc.errors import UnsupportedCombination
from microguard.sdc.microaggregation.clustering import Clustering
from microguard.sdc.microaggregation.encoding import LARGEST_COORDINATE
from microguard.sdc.microaggregation.heuristics.univariate import (
    labels_of,
    relative_error,
    shortest_path,
    steps_between,
)
from microguard.sdc.microaggregation.records import Axis, Records
from microguard.sdc.stop import Deadline

NAME = "univariate-optimal"


def carries(records: Records) -> bool:
    """Return whether the shortest path is optimal for these records: one coordinate and equal weights.

    With unequal weights, optimal clusters need not be consecutive in the sorted values.
    """
    return records.values.shape[1] == 1 and not records.weighted


def solve(records: Records, k: int, *, deadline: Deadline, seed: int) -> Clustering:
    """Compute the partition with minimal SSE (up to rounding errors); it is deterministic."""
    if not carries(records):
        raise UnsupportedCombination(
            "algorithm univariate-optimal: expected one numeric variable with equal record weights, found "
            f"{records.values.shape[1]} coordinates or other weights. Choose another algorithm"
        )
    axis = records.axis or Axis(records.values[:, 0], 1.0)
    ranked = np.argsort(axis.values, kind="stable")
    steps, factor = steps_between(axis.values[ranked])
    starts, squares = shortest_path(steps, k)
    labels = np.empty(len(records), dtype=np.int64)
    labels[ranked] = labels_of(starts, len(records))
    clustering = Clustering.of(records, labels, NAME, bound_kind="shortest path", stopped_by="proof")
    sse = float(records.weights[0] * squares / (factor * axis.unit) ** 2)
    if np.any(steps[steps > 0.0] < 1.0 / LARGEST_COORDINATE) or not np.isfinite(sse):
        return replace(clustering, bound_kind=None, stopped_by="work")
    error = float(relative_error(len(records), k))
    return replace(clustering, sse=sse, lower_bound=sse * (1.0 - error))
