"""Fixed-size clusters along one axis: a particular variable, the sum of z-scores, the first component.

The records are ranked by their score on the axis, and clusters of k successive records are formed; the
cluster around the mode of the scores takes the records left over (Domingo-Ferrer and Mateo-Sanz 2002,
sections 4 and 5, methods PF(PV), PF(SZ) and PF(FPC) of Table 3). The cost is a sort, and the loss about
twice that of methods that do not project.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from microguard.sdc.microaggregation.clustering import Clustering
from microguard.sdc.microaggregation.heuristics.univariate import fixed_size, labels_of
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.stop import Deadline

#: A connected partition of one ascending variable: values, k -> starts.
Partition = Callable[[np.ndarray, int], np.ndarray]


def solve_variable(records: Records, k: int, *, deadline: Deadline, seed: int) -> Clustering:
    """Fixed-size clusters along a particular variable: the one that loses least.

    Every variable is tried, as in Table 3, where the loss differs by more than half between variables.
    """
    return along_least_lossy_variable(records, k, fixed_size, "projection-pv")


def solve_z_scores(records: Records, k: int, *, deadline: Deadline, seed: int) -> Clustering:
    """Fixed-size clusters along the sum of z-scores."""
    return Clustering.of(records, labels_along(sum_of_z_scores(records), k, fixed_size), "projection-sz")


def solve_first_component(records: Records, k: int, *, deadline: Deadline, seed: int) -> Clustering:
    """Fixed-size clusters along the first principal component."""
    scores = first_component_scores(records)
    return Clustering.of(records, labels_along(scores, k, fixed_size), "projection-fpc")


def along_least_lossy_variable(records: Records, k: int, partition: Partition, algorithm: str) -> Clustering:
    """The least lossy of the clusterings by `partition` along each numeric variable, ties to the first."""
    clusterings = [
        Clustering.of(
            records, labels_along(scores, k, partition), algorithm, work={"axes": records.variables}
        )
        for scores in records.values[:, : records.variables].T
    ]
    return min(clusterings, key=lambda clustering: clustering.sse)


def labels_along(scores: np.ndarray, k: int, partition: Partition = fixed_size) -> np.ndarray:
    """Clusters of records (n,) by a connected partition of their scores (n,); ties rank as they come."""
    ranked = np.argsort(scores, kind="stable")
    labels = np.empty(len(scores), dtype=np.int64)
    labels[ranked] = labels_of(partition(scores[ranked], k), len(scores))
    return labels


def sum_of_z_scores(records: Records) -> np.ndarray:
    """Sum over the numeric variables of (value - mean) / standard deviation, (n,); constants add 0."""
    numeric = records.values[:, : records.variables]
    spread = numeric.std(axis=0, ddof=1)
    varying = spread > 0.0
    centred = numeric - numeric.mean(axis=0)
    return np.asarray(np.sum(centred[:, varying] / spread[varying], axis=1))


def first_component_scores(records: Records) -> np.ndarray:
    """Score of each record on the first principal component of the coordinates, (n,).

    Plain sums instead of BLAS, whose bits depend on the number of threads.
    """
    centred = records.values - np.average(records.values, axis=0, weights=records.weights)
    scatter = np.einsum("ni,nj->ij", centred * records.weights[:, np.newaxis], centred)
    direction = np.linalg.eigh(scatter)[1][:, -1]
    # An eigenvector's sign is the library's accident: the largest loading is made positive.
    direction = direction * np.sign(direction[np.argmax(np.abs(direction))])
    return np.einsum("ni,i->n", centred, direction)
