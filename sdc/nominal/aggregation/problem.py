"""The aggregation problem: one representative per cluster (Cost 2023, sections 5.2 and 5.4).

Preprocessing is that of section 5.4: duplicates within a cluster are dropped; a cluster of identical
records is decided; and where all members of a cluster agree on a table's variables, the cluster's count in
that table is added to the base counts at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdc.nominal.control_tables import ControlTables

#: Cell of a choice in a table in which its whole cluster counts alike: already in the base counts.
SETTLED = -1


@dataclass(frozen=True)
class AggregationProblem:
    """The open clusters after preprocessing.

    Attributes
    ----------
    tables : ControlTables
    base : (cells,) int64 array, counts that do not depend on the choices
    sizes : (c,) int64 array, records of each open cluster
    start : (c + 1,) int64 array; the choices of cluster i are start[i] ... start[i + 1] - 1
    choice : (v,) int64 array, combination of each choice
    cells : (v, T) int64 array, cell in which the choice counts in each table, or SETTLED
    cluster : (c,) int64 array, label of each open cluster
    decided : (clusters,) int64 array, combination by label; -1 where the cluster is open
    """

    tables: ControlTables
    base: np.ndarray
    sizes: np.ndarray
    start: np.ndarray
    choice: np.ndarray
    cells: np.ndarray
    cluster: np.ndarray
    decided: np.ndarray

    @classmethod
    def of(cls, combination: np.ndarray, labels: np.ndarray, tables: ControlTables) -> AggregationProblem:
        """Preprocess a clustering.

        Parameters
        ----------
        combination : (n,) combination of each record
        labels : (n,) cluster of each record, 0 ... clusters - 1, none empty
        """
        pairs = np.unique(np.column_stack([labels, combination]), axis=0)
        clusters = int(labels.max()) + 1
        records = np.bincount(labels, minlength=clusters)
        distinct = np.bincount(pairs[:, 0], minlength=clusters)
        begin = np.concatenate([[0], np.cumsum(distinct)])
        decided = np.where(distinct == 1, pairs[begin[:-1], 1], -1)
        base = np.zeros(len(tables.original), np.int64)
        for label in np.flatnonzero(decided >= 0):
            base[tables.cells[decided[label]]] += records[label]
        is_open = np.flatnonzero(distinct > 1)
        members = pairs[distinct[pairs[:, 0]] > 1, 1]
        start = np.concatenate([[0], np.cumsum(distinct[is_open])]).astype(np.int64)
        cells = tables.cells[members].astype(np.int64)
        for index, label in enumerate(is_open):
            span = slice(start[index], start[index + 1])
            agree = (cells[span] == cells[start[index]]).all(axis=0)
            base[cells[start[index], agree]] += records[label]
            cells[span, agree] = SETTLED
        return cls(tables, base, records[is_open].astype(np.int64), start, members, cells, is_open, decided)

    @property
    def choices(self) -> int:
        """Number of choices v."""
        return len(self.choice)

    def owner(self) -> np.ndarray:
        """Open cluster of each choice, (v,)."""
        return np.repeat(np.arange(len(self.sizes)), np.diff(self.start))

    def representatives(self, chosen: np.ndarray) -> np.ndarray:
        """Combination of each cluster by label, given the choice (c,) of each open one."""
        result = self.decided.copy()
        result[self.cluster] = self.choice[chosen]
        return result

    def chi2(self, chosen: np.ndarray) -> float:
        """Objective (5.2.1) of a choice per open cluster."""
        counts = self.base.copy()
        for index, choice in enumerate(chosen):
            cells = self.cells[choice]
            counts[cells[cells != SETTLED]] += self.sizes[index]
        return float(np.sum((counts - self.tables.original) ** 2 * self.tables.reciprocals))
