"""The result of a clustering: who is with whom, what it costs, what was proved about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
import pandas as pd
from microguard.sdc.microaggregation.records import Records
from microguard.sdc.microaggregation.sse import sum_of_squares
from microguard.sdc.stop import StoppedBy

#: Relative difference of SSE and lower bound up to which a clustering counts as proved optimal: sums of
#: squares of a few thousand records agree to about 1e-12, a linear program's bound to about 1e-7.
OPTIMALITY_TOLERANCE = 1e-7


@dataclass(frozen=True)
class Clustering:
    """Records partitioned into clusters of at least k, with cost and proof.

    Attributes
    ----------
    labels : (n,) int64 array
        Cluster of each record, 0 to `clusters` - 1.
    sse : float
        Sum over records of the (weighted) squared distance to the mean of their cluster, in the units
        of `Records.values`.
    sst : float
        The same with one cluster of all records.
    algorithm : str
        Name of the algorithm that ran.
    lower_bound : float or None
        Proved lower bound on the SSE of any such clustering; None where none was proved.
    bound_kind : str or None
        What proves the bound, for example ``"linear program with subset-row cuts"``.
    stopped_by : {"work", "proof", "time"}
        What ended the search.
    work : mapping of str to int
        Work done by kind (moves, starts, columns, nodes).
    """

    labels: np.ndarray
    sse: float
    sst: float
    algorithm: str
    lower_bound: float | None = None
    bound_kind: str | None = None
    stopped_by: StoppedBy = "work"
    work: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "work", MappingProxyType(dict(self.work)))

    def __reduce__(self) -> tuple[object, ...]:
        # A mapping proxy cannot be pickled, and results travel between processes.
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
    ) -> Clustering:
        """Clustering of `records` by `labels` (any integers), its SSE computed from the labels alone.

        Clusters are numbered in the order in which their first records stand.
        """
        compact = pd.factorize(np.asarray(labels))[0].astype(np.int64)
        return cls(
            compact,
            sum_of_squares(records.values, records.weights, compact),
            records.sst,
            algorithm,
            None if lower_bound is None else float(lower_bound),
            bound_kind,
            stopped_by,
            work or {},
        )

    def relabelled(self, labels: np.ndarray) -> Clustering:
        """The same clusters under other labels or in another order of records."""
        return replace(self, labels=labels)

    @property
    def clusters(self) -> int:
        """Number of clusters."""
        return int(self.labels.max()) + 1

    @property
    def sizes(self) -> np.ndarray:
        """Records per cluster, (clusters,)."""
        return np.bincount(self.labels, minlength=self.clusters)

    @property
    def information_loss(self) -> float:
        """SSE/SST, a fraction; 0 where the records do not vary."""
        return self.sse / self.sst if self.sst > 0.0 else 0.0

    @property
    def gap(self) -> float | None:
        """(SSE - lower bound) / SSE; None without a bound."""
        if self.lower_bound is None:
            return None
        if self.sse <= 0.0:
            return 0.0
        return max(0.0, (self.sse - self.lower_bound) / self.sse)

    @property
    def optimal(self) -> bool:
        """Whether the bound proves that no clustering has a smaller SSE."""
        gap = self.gap
        return gap is not None and gap <= OPTIMALITY_TOLERANCE
