"""Individual ranking: microaggregate each variable separately, with the records sorted by it.

Individual ranking has the least information loss and the weakest protection. Records are k-anonymous on each
variable but not on their combination, and the means of neighbouring clusters bound each value (Domingo-Ferrer
and Mateo-Sanz 2002, sections 3.1 and 6).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from microguard.sdc.algorithms.microaggregation import GeneticParams
from microguard.sdc.arguments import check_name, checked_seed
from microguard.sdc.errors import UnsupportedCombination
from microguard.sdc.microaggregation.heuristics.genetic import genetic
from microguard.sdc.microaggregation.heuristics.k_ward import connected
from microguard.sdc.microaggregation.heuristics.projections import labels_along
from microguard.sdc.microaggregation.heuristics.univariate import fixed_size, optimal
from microguard.sdc.microaggregation.records import Records, given_values


@dataclass(frozen=True)
class IndividualRanking:
    """One clustering per variable. Converted to an array or indexed, it returns the labels.

    Attributes
    ----------
    labels : (n, p) int64 array
        Cluster of each record on each variable, numbered from 0 in ascending order of the values.
    sse : (p,) float array
        Sum of squares within clusters of each variable, in units of its variance (ddof=1).
    sst : (p,) float array
        Total sum of squares in the same units: n - 1, or 0 for a constant variable.
    algorithm : str
        Name of the method for one variable.
    """

    labels: np.ndarray
    sse: np.ndarray
    sst: np.ndarray
    algorithm: str

    @property
    def information_loss(self) -> np.ndarray:
        """Return SSE/SST of each variable, (p,) fractions; 0 for a constant variable.

        Table 1 of the paper prints 100 L.
        """
        return np.divide(self.sse, self.sst, out=np.zeros_like(self.sse), where=self.sst > 0.0)

    @property
    def optimal(self) -> bool:
        """Return whether the SSE of every variable is minimal, up to rounding errors."""
        return self.algorithm == "optimal"

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the labels, (n, p)."""
        return self.labels.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.labels, dtype=dtype, copy=copy)

    def __getitem__(self, index: Any) -> Any:
        return self.labels[index]


def individual_ranking(
    records: Any,
    k: int,
    *,
    algorithm: str = "optimal",
    seed: int = 0,
    genetic_parameters: GeneticParams | None = None,
) -> IndividualRanking:
    """Cluster the records on each variable separately, into clusters of at least k.

    Parameters
    ----------
    records : (n, p) array or DataFrame
        Finite numbers, n >= k.
    k : int
        Minimum cluster size, at least 2.
    algorithm : {"optimal", "fixed-size", "k-ward", "genetic-average", "genetic-maximum"}
        Method for one variable: the optimum by shortest path, or methods F, k-W, A and M of Table 1 of the
        paper.
    seed : int
        Seed of the genetic algorithms; the others are deterministic.
    genetic_parameters : GeneticParams, optional
        Parameters of the genetic algorithms, by default the paper's. `algorithm` determines the convergence.

    Returns
    -------
    IndividualRanking
        The clusters and their numbers depend on the order of the records only among equal values.

    Raises
    ------
    TooFewRecords, InvalidParameter, NotNumeric, NotFinite, NoVariation, ShapeMismatch
    """
    seed = checked_seed(seed)
    parameters = genetic_parameters or GeneticParams()
    average, maximum = (replace(parameters, convergence=name) for name in ("average", "maximum"))
    partitions: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
        "optimal": optimal,
        "fixed-size": fixed_size,
        "k-ward": connected,
        "genetic-average": partial(genetic, params=average, seed=seed),
        "genetic-maximum": partial(genetic, params=maximum, seed=seed),
    }
    check_name("algorithm", algorithm, partitions)
    if genetic_parameters is not None and not algorithm.startswith("genetic"):
        raise UnsupportedCombination(
            f"genetic_parameters: expected a genetic algorithm, found {algorithm}. Leave the parameters out"
        )
    encoded, order = Records.of(records, k)
    labels = np.empty(encoded.values.shape, dtype=np.int64)
    sse = np.empty(encoded.variables)
    sst = np.empty(encoded.variables)
    for j, values in enumerate(encoded.values.T):
        # the shortest path uses the original values, because their differences are exact
        ranked_by = given_values(records, j)[order] if algorithm == "optimal" else values
        clusters = labels_along(ranked_by, int(k), partitions[algorithm])
        labels[order, j] = clusters
        sse[j] = _sum_of_squares(values, clusters)
        sst[j] = _sum_of_squares(values, np.zeros_like(clusters))
    return IndividualRanking(labels, sse, sst, algorithm)


def _sum_of_squares(values: np.ndarray, labels: np.ndarray) -> float:
    means = np.bincount(labels, weights=values) / np.bincount(labels)
    return float(np.sum((values - means[labels]) ** 2))
