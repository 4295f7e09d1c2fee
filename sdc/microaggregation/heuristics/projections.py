"""Fixed-size clusters along one axis: one variable, the sum of z-scores, or the first principal component.

The records are ranked by their score on the axis, and clusters of k consecutive records are formed. The
cluster around the mode of the scores takes the remaining records (Domingo-Ferrer and Mateo-Sanz 2002,
sections 4 and 5, methods PF(PV), PF(SZ) and PF(FPC) of Table 3). The cost is one sort. The loss is about
twice that of methods without projection.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from microguard.sdc.algorithms.microaggregation import ProjectionParameters
from microguard.sdc.errors import InvalidParameter
from microguard.sdc.microaggregation.clustering import Clustering
from microguard.sdc.microaggregation.heuristics.univariate import fixed_size, labels_of
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.stop import Deadline

#: Type of a function that partitions ascending values into clusters of consecutive values: (values, k) ->
#: starts of the clusters.
Partition = Callable[[np.ndarray, int], np.ndarray]


def solve_variable(
    records: Records,
    k: int,
    *,
    deadline: Deadline,
    seed: int,
    parameters: ProjectionParameters = ProjectionParameters(),  # noqa: B008 (frozen)
) -> Clustering:
    """Form fixed-size clusters along a named variable, by default the one with the least loss.

    Raises
    ------
    InvalidParameter
        If the records have no such variable.
    """
    return along_variable(records, k, fixed_size, "projection-pv", parameters.variable)


def solve_z_scores(records: Records, k: int, *, deadline: Deadline, seed: int) -> Clustering:
    """Form fixed-size clusters along the sum of z-scores."""
    return Clustering.of(records, labels_along(sum_of_z_scores(records), k, fixed_size), "projection-sz")


def solve_first_component(records: Records, k: int, *, deadline: Deadline, seed: int) -> Clustering:
    """Form fixed-size clusters along the first principal component."""
    scores = first_component_scores(records)
    return Clustering.of(records, labels_along(scores, k, fixed_size), "projection-fpc")


def along_variable(
    records: Records, k: int, partition: Partition, algorithm: str, name: str | None
) -> Clustering:
    """Cluster the records by the order of a numeric variable.

    Without a name, cluster along each variable and return the first clustering with the least loss.

    All variables are tried, because their losses differ by more than half in Table 3.
    """
    axes = variables_named(records, name)
    clusterings = [
        Clustering.of(records, labels_along(scores, k, partition), algorithm, work={"axes": len(axes)})
        for scores in axes
    ]
    return min(clusterings, key=lambda clustering: clustering.sse)


def variables_named(records: Records, name: str | None) -> np.ndarray:
    """Return the coordinates of the numeric variables, (variables, n), or only of the named variable.

    Raises
    ------
    InvalidParameter
    """
    numeric = records.values[:, : records.variables].T
    if name is None:
        return numeric
    if name not in records.names:
        raise InvalidParameter(
            f"variable: expected a column of the records (a DataFrame), found {name!r}. Name a column, or "
            "leave the name out to use the variable with the least loss",
            variable="variable",
        )
    return numeric[[records.names.index(name)]]


def labels_along(scores: np.ndarray, k: int, partition: Partition = fixed_size) -> np.ndarray:
    """Return the cluster of each record, (n,), by partitioning the sorted scores; ties are sorted by
    position.
    """
    ranked = np.argsort(scores, kind="stable")
    labels = np.empty(len(scores), dtype=np.int64)
    labels[ranked] = labels_of(partition(scores[ranked], k), len(scores))
    return labels


def sum_of_z_scores(records: Records) -> np.ndarray:
    """Return the sum of z-scores over the numeric variables, (n,); constant variables add 0."""
    numeric = records.values[:, : records.variables]
    spread = numeric.std(axis=0, ddof=1)
    varying = spread > 0.0
    centred = numeric - numeric.mean(axis=0)
    return np.asarray(np.sum(centred[:, varying] / spread[varying], axis=1))


def first_component_scores(records: Records) -> np.ndarray:
    """Return the score of each record on the first principal component of the coordinates, (n,).

    einsum replaces BLAS, whose rounding depends on the number of threads.
    """
    centred = records.values - np.average(records.values, axis=0, weights=records.weights)
    scatter = np.einsum("ni,nj->ij", centred * records.weights[:, np.newaxis], centred)
    direction = np.linalg.eigh(scatter)[1][:, -1]
    # the sign of an eigenvector is arbitrary, so the largest loading is made positive
    direction = direction * np.sign(direction[np.argmax(np.abs(direction))])
    return np.einsum("ni,i->n", centred, direction)
