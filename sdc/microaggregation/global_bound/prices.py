"""Prices of records that the parts at hand allow, as high in sum as they come: dual ascent with soft minima.

Raising one price after the other as far as its parts allow stops far below the best prices: each rise uses up
what others would have made more of. Let a price instead rise or fall to the soft minimum of what its parts
leave,

    - e log (sum over its parts of exp(- slack / e)),

which is exact coordinate ascent on the sum of the prices less e times the sum over parts of
exp(- slack / e), a smooth and concave function (Bregman 1967; as Sinkhorn's scaling for assignments). e falls
sweep by sweep; once a sweep changes nothing more, every slack is at least 0.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.microaggregation.global_bound.part_costs import part_costs

#: A slack of so many e counts for nothing.
_NEGLIGIBLE = 30.0
#: Odd numbers that mix a part's records to a number to know it by; two parts may share one, then one is lost.
_MIX, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)


class Pool:
    """The parts at hand.

    Attributes
    ----------
    members : (parts, t) int32 array
        Records, -1 as filler.
    costs : (parts,) array
    """

    def __init__(self, values: np.ndarray, reach: np.ndarray, t: int) -> None:
        self._values, self._reach = values, reach
        self.members = np.empty((0, t), dtype=np.int32)
        self.costs = np.empty(0)
        self._known = np.empty(0, dtype=np.uint64)

    def add(self, members: np.ndarray) -> int:
        """Add parts, (parts, t), -1 as filler; how many were new."""
        members = -np.sort(-members.astype(np.int32), axis=1)  # the filler comes last
        keys = np.zeros(len(members), dtype=np.uint64)
        for column in members.T:
            keys = (keys ^ (column + 2).astype(np.uint64)) * _MIX
            keys ^= keys >> _SHIFT
        _, first = np.unique(keys, return_index=True)
        first = np.sort(first)
        new = first[~np.isin(keys[first], self._known)]
        self._known = np.concatenate([self._known, keys[new]])
        self.members = np.concatenate([self.members, members[new]])
        self.costs = np.concatenate([self.costs, part_costs(self._values, self._reach, members[new])])
        return len(new)

    def raised(self, prices: np.ndarray, softness: np.ndarray) -> np.ndarray:
        """Prices after a sweep over all records at each softness, from these."""
        parts, places = np.nonzero(self.members >= 0)
        records = self.members[parts, places]
        start = np.concatenate([[0], np.cumsum(np.bincount(records, minlength=len(prices)))])
        of_record = parts[np.argsort(records, kind="stable")]
        raised = prices.copy()
        _sweep(raised, self.members, self.costs, start.astype(np.int64), of_record.astype(np.int64), softness)
        return raised


@kernel
def _sweep(
    prices: np.ndarray,
    members: np.ndarray,
    costs: np.ndarray,
    start: np.ndarray,
    of_record: np.ndarray,
    softness: np.ndarray,
) -> None:
    slack = costs.copy()
    for part in range(len(costs)):
        for b in range(members.shape[1]):
            if members[part, b] >= 0:
                slack[part] -= prices[members[part, b]]
    for e in softness:
        for i in range(len(prices)):
            least = np.inf
            for b in range(start[i], start[i + 1]):
                least = min(least, slack[of_record[b]])
            total = 0.0
            for b in range(start[i], start[i + 1]):
                above = (slack[of_record[b]] - least) / e
                if above < _NEGLIGIBLE:
                    total += np.exp(-above)
            if total > 0.0:
                change = least - e * np.log(total)
                prices[i] += change
                for b in range(start[i], start[i + 1]):
                    slack[of_record[b]] -= change
