"""Result of a clustering: labels, information loss, and lower bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.microaggregation.sse import sum_of_squares
from microguard.sdc.stop import StoppedBy

#: Maximum relative difference of SSE and lower bound of a clustering that counts as proved optimal. Sums of
#: squares of a few thousand records agree to about 1e-12, the bound of a linear program to about 1e-7.
OPTIMALITY_TOLERANCE = 1e-7


@dataclass(frozen=True)
class Clustering:
    """Partition of the records into clusters of at least k records, with its SSE and a lower bound.

    Attributes
    ----------
    labels : (n,) int64 array
        Cluster of each record, 0 to `clusters` - 1.
    sse : float
        Sum over the records of the (weighted) squared distance to the mean of their cluster, in the units
        of `Records.values`.
    sst : float
        SSE of a single cluster of all records.
    algorithm : str
        Name of the algorithm that ran.
    lower_bound : float or None
        Proved lower bound on the SSE of every such clustering; None if no bound was proved.
    bound_kind : str or None
        Method that proves the bound, for example ``"linear program with subset-row cuts"``.
    stopped_by : {"work", "proof", "time"}
        Stopping reason of the search.
    work : mapping of str to int
        Amount of work by kind (moves, starts, columns, nodes).
    sse_by_heuristic : mapping of str to float
        For column generation: SSE of the best clustering of each heuristic, for the gaps of equation (15) of
        Gentile et al. (2020). Empty otherwise.
    """

    labels: np.ndarray
    sse: float
    sst: float
    algorithm: str
    lower_bound: float | None = None
    bound_kind: str | None = None
    stopped_by: StoppedBy = "work"
    work: Mapping[str, int] = field(default_factory=dict)
    sse_by_heuristic: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("work", "sse_by_heuristic"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __reduce__(self) -> tuple[object, ...]:
        # plain dict, because results are sent between processes and a mapping proxy cannot be pickled
        return (
            Clustering,
            (
                self.labels,
                self.sse,
                self.sst,
                self.algorithm,
                self.lower_bound,
                self.bound_kind,
                self.stopped_by,
                dict(self.work),
                dict(self.sse_by_heuristic),
            ),
        )

    @classmethod
    def of(
        cls,
        records: Records,
        labels: np.ndarray,
        algorithm: str,
        *,
        lower_bound: float | None = None,
        bound_kind: str | None = None,
        stopped_by: StoppedBy = "work",
        work: Mapping[str, int] | None = None,
        sse_by_heuristic: Mapping[str, float] | None = None,
    ) -> Clustering:
        """Build a clustering from `labels` (any integers) and compute its SSE.

        Clusters are renumbered in the order of their first records.
        """
        _, first, members = np.unique(np.asarray(labels), return_index=True, return_inverse=True)
        compact = np.argsort(np.argsort(first))[members].astype(np.int64)
        return cls(
            compact,
            sum_of_squares(records.values, records.weights, compact),
            records.sst,
            algorithm,
            None if lower_bound is None else float(lower_bound),
            bound_kind,
            stopped_by,
            work or {},
            sse_by_heuristic or {},
        )

    def relabelled(self, labels: np.ndarray) -> Clustering:
        """Return the same clustering with other labels, or with the records in another order."""
        return replace(self, labels=labels)

    @property
    def clusters(self) -> int:
        """Return the number of clusters."""
        return int(self.labels.max()) + 1

    @property
    def sizes(self) -> np.ndarray:
        """Return the number of records of each cluster, (clusters,)."""
        return np.bincount(self.labels, minlength=self.clusters)

    @property
    def information_loss(self) -> float:
        """Return SSE/SST, a fraction; 0 if all records are equal."""
        return self.sse / self.sst if self.sst > 0.0 else 0.0

    @property
    def gap(self) -> float | None:
        """Return (SSE - lower bound) / SSE; None without a bound."""
        if self.lower_bound is None:
            return None
        if self.sse <= 0.0:
            return 0.0
        return max(0.0, (self.sse - self.lower_bound) / self.sse)

    @property
    def optimal(self) -> bool:
        """Return whether the bound proves that no clustering has a smaller SSE."""
        gap = self.gap
        return gap is not None and gap <= OPTIMALITY_TOLERANCE
