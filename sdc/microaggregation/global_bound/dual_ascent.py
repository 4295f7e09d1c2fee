"""Dual ascent with soft-min smoothing: maximise the dual of the set-partitioning LP over the current columns.

Plain coordinate ascent raises one dual after the other as far as the columns allow, and stops far below the
optimum. Instead, each dual changes by the soft minimum of the slacks of its columns,

    - e log (sum over its columns of exp(- slack / e)).

This is exact coordinate ascent on a smooth concave function: the sum of the duals minus e times the sum over
all columns of exp(- slack / e) (Bregman 1967; Sinkhorn's scaling for assignments is an instance). e decreases
with each sweep. At convergence, every slack is at least 0.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.global_bound.column_costs import column_costs

#: Constants of the hash that identifies columns. If two columns have equal hashes, one of them is lost.
_MIX, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)


class ColumnPool:
    """Current columns of the linear program.

    Attributes
    ----------
    members : (columns, t) int32 array
        Records of each column, padded with -1.
    costs : (columns,) array
    """

    def __init__(self, values: np.ndarray, reach: np.ndarray, t: int) -> None:
        self._values, self._reach = values, reach
        self.members = np.empty((0, t), dtype=np.int32)
        self.costs = np.empty(0)
        self._known = np.empty(0, dtype=np.uint64)

    def add(self, members: np.ndarray) -> int:
        """Add columns, (columns, t), padded with -1; return how many were new."""
        members = -np.sort(-members.astype(np.int32), axis=1)  # the padding is sorted last
        keys = np.zeros(len(members), dtype=np.uint64)
        for column in members.T:
            keys = (keys ^ (column + 2).astype(np.uint64)) * _MIX
            keys ^= keys >> _SHIFT
        _, first = np.unique(keys, return_index=True)
        first = np.sort(first)
        new = first[~np.isin(keys[first], self._known)]
        self._known = np.concatenate([self._known, keys[new]])
        self.members = np.concatenate([self.members, members[new]])
        self.costs = np.concatenate([self.costs, column_costs(self._values, self._reach, members[new])])
        return len(new)

    def ascend(self, duals: np.ndarray, softness: np.ndarray) -> np.ndarray:
        """Return the duals after one sweep over all records for each softness e, starting from `duals`."""
        columns, places = np.nonzero(self.members >= 0)
        records = self.members[columns, places]
        start = np.concatenate([[0], np.cumsum(np.bincount(records, minlength=len(duals)))])
        of_record = columns[np.argsort(records, kind="stable")]
        ascend = duals.copy()
        _sweep(ascend, self.members, self.costs, start.astype(np.int64), of_record.astype(np.int64), softness)
        return ascend


@kernel
def _sweep(
    duals: np.ndarray,
    members: np.ndarray,
    costs: np.ndarray,
    start: np.ndarray,
    of_record: np.ndarray,
    softness: np.ndarray,
) -> None:
    slack = costs.copy()
    for column in range(len(costs)):
        for b in range(members.shape[1]):
            if members[column, b] >= 0:
                slack[column] -= duals[members[column, b]]
    for e in softness:
        for i in range(len(duals)):
            least = np.inf
            for b in range(start[i], start[i + 1]):
                least = min(least, slack[of_record[b]])
            total = 0.0
            for b in range(start[i], start[i + 1]):
                total += np.exp((least - slack[of_record[b]]) / e)
            if total > 0.0:
                change = least - e * np.log(total)
                duals[i] += change
                for b in range(start[i], start[i + 1]):
                    slack[of_record[b]] -= change
