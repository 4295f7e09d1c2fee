"""One coordinate: the optimal partition, by the shortest path over the sorted values.

Hansen and Mukherjee 2003, "A polynomial algorithm for optimal univariate microaggregation". The path is
taken over the values as they were given: standardised ones have lost the differences between ordinary
values where a code for missing ones lies far from them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from microguard.sdc.errors import UnsupportedCombination
from microguard.sdc.microaggregation.clustering import Clustering
from microguard.sdc.microaggregation.heuristics.univariate import (
    labels_of,
    relative_error,
    shortest_path,
    steps_between,
)
from microguard.sdc.microaggregation.records import Axis, Records
from microguard.sdc.stop import Deadline

NAME = "univariate-optimal"
#: Positive steps whose squares are normal numbers; smaller ones would count as nothing.
LEAST_STEP = 1e-150


def carries(records: Records) -> bool:
    """Whether the shortest path is optimal: one coordinate, and equal weights.

    With unequal weights an optimal cluster need not be a run of the sorted values.
    """
    return records.values.shape[1] == 1 and not records.weighted


def solve(records: Records, k: int, *, deadline: Deadline, seed: int) -> Clustering:
    """The optimum, proved up to the rounding of its SSE; no randomness, no clock."""
    if not carries(records):
        raise UnsupportedCombination(
            "univariate-optimal clusters one numeric variable without record weights, "
            f"found {records.values.shape[1]} coordinates"
        )
    axis = records.axis or Axis(records.values[:, 0], 1.0)
    ranked = np.argsort(axis.values, kind="stable")
    steps, factor = steps_between(axis.values[ranked])
    starts, squares = shortest_path(steps, k)
    labels = np.empty(len(records), dtype=np.int64)
    labels[ranked] = labels_of(starts, len(records))
    clustering = Clustering.of(records, labels, NAME, bound_kind="shortest path", stopped_by="proof")
    sse = float(records.weights[0] * squares / (factor * axis.unit) ** 2)
    if np.any(steps[steps > 0.0] < LEAST_STEP) or not np.isfinite(sse):
        return replace(clustering, bound_kind=None, stopped_by="work")
    error = float(relative_error(len(records), k))
    return replace(clustering, sse=sse, lower_bound=sse * (1.0 - error))
