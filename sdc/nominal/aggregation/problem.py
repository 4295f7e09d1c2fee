"""The aggregation problem: one representative per cluster (Cost 2023, sections 5.2 and 5.4).

Preprocessing follows section 5.4. Duplicates within a cluster are removed. For a cluster of equal records the
representative is decided. If all members of a cluster agree in the variables of a table, the cluster's count
in that table does not depend on the choice and is part of the base counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.nominal.control_tables import ControlTables

#: Value that replaces the cell of a table in which all choices of the cluster have the same cell; the base
#: counts include this cell.
SETTLED = -1


@dataclass(frozen=True)
class AggregationProblem:
    """Open clusters: those whose representative is not determined by preprocessing.

    Attributes
    ----------
    tables : ControlTables
    base : (cells,) int64 array
        Counts that do not depend on the choices.
    sizes : (c,) int64 array
        Number of records of each open cluster.
    start : (c + 1,) int64 array
        The choices of cluster i are start[i] to start[i + 1] - 1.
    choice : (v,) int64 array
        Key combination of each choice.
    cells : (v, T) int64 array
        Cell of each choice in each table, or SETTLED.
    cluster : (c,) int64 array
        Label of each open cluster.
    decided : (clusters,) int64 array
        Key combination of each cluster by label; -1 for an open cluster.
    kept : (cells,) bool array
        Cells that must not be emptied and that contain no decided cluster.
    """

    tables: ControlTables
    base: np.ndarray
    sizes: np.ndarray
    start: np.ndarray
    choice: np.ndarray
    cells: np.ndarray
    cluster: np.ndarray
    decided: np.ndarray
    kept: np.ndarray

    @classmethod
    def from_clustering(
        cls,
        combination: np.ndarray,
        labels: np.ndarray,
        tables: ControlTables,
        records: np.ndarray | None = None,
        kept: np.ndarray | None = None,
    ) -> AggregationProblem:
        """Preprocess a clustering into an aggregation problem.

        Parameters
        ----------
        combination : (n,) int array
            Key combination of each row.
        labels : (n,) int array
            Cluster of each row, 0 to clusters - 1; no cluster is empty.
        tables : ControlTables
        records : (n,) int array, optional
            Number of records of each row; 1 by default.
        kept : (cells,) bool array, optional
            Cells that must not be emptied; none by default.
        """
        m = len(tables.cells)
        label, member = np.divmod(np.unique(labels.astype(np.int64) * m + combination), m)
        clusters = int(labels.max()) + 1
        weights = np.ones(len(labels), np.int64) if records is None else records
        mass = np.bincount(labels, weights=weights, minlength=clusters).astype(np.int64)
        distinct = np.bincount(label, minlength=clusters)
        begin = np.cumsum(distinct) - distinct
        decided = np.where(distinct == 1, member[begin], -1)
        settled = decided >= 0
        base = np.zeros(len(tables.original), np.int64)
        _add(base, tables.cells[decided[settled]], mass[settled])
        is_open = np.flatnonzero(distinct > 1)
        choice = member[distinct[label] > 1]
        start = np.concatenate([[0], np.cumsum(distinct[is_open])]).astype(np.int64)
        cells = tables.cells[choice].astype(np.int64)
        if len(is_open):
            low, high = (edge.reduceat(cells, start[:-1], axis=0) for edge in (np.minimum, np.maximum))
            agree = low == high
            _add(base, np.where(agree, low, SETTLED), mass[is_open])
            cells[np.repeat(agree, np.diff(start), axis=0)] = SETTLED
        at_stake = np.zeros(len(base), bool) if kept is None else kept & (base == 0)
        return cls(tables, base, mass[is_open], start, choice, cells, is_open, decided, at_stake)

    @property
    def choices(self) -> int:
        """Return the number of choices v."""
        return len(self.choice)

    def owner(self) -> np.ndarray:
        """Return the open cluster that each choice belongs to, (v,)."""
        return np.repeat(np.arange(len(self.sizes)), np.diff(self.start))

    def representatives(self, chosen: np.ndarray) -> np.ndarray:
        """Return the key combination of each cluster by label, given the open clusters' choices (c,)."""
        result = self.decided.copy()
        result[self.cluster] = self.choice[chosen]
        return result

    def chi2(self, chosen: np.ndarray) -> float:
        """Return the objective (5.2.1) of the choices (c,) of the open clusters."""
        counts = self.base.copy()
        _add(counts, self.cells[chosen], self.sizes)
        return float(np.sum((counts - self.tables.original) ** 2 * self.tables.reciprocals))


def _add(counts: np.ndarray, cells: np.ndarray, records: np.ndarray) -> None:
    """Add the records of each row to its cells (rows, T); skip cells marked `SETTLED`."""
    everywhere = cells != SETTLED
    np.add.at(counts, cells[everywhere], np.broadcast_to(records[:, None], cells.shape)[everywhere])
