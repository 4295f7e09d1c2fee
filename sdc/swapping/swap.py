"""Targeted record swapping: units at risk exchange their geography with similar units in other areas.

From the coarsest level of the geography to the finest, each unit at risk at a level is exchanged with a unit
of another area of that level, within the same area of the level above. Levels that do not nest (a
municipality and a school district of one region) each name the level that they nest in. Partners agree in a
similarity profile and differ in at least one risk variable: otherwise no count would change. Among the
possible partners, the exchange changes as few counts as possible: units are assigned to donors by a linear
assignment, not to the first donor that fits. An exchanged unit is not exchanged again. At the finest level
further units are exchanged until the rate is met. Only the geography is exchanged, and counts by the levels
above do not change.

References
----------
Shlomo, Tudor and Groom 2010, Data swapping for protecting census tables (PSD 2010).
de Wolf et al. 2019, Perturbative confidentiality methods for census tables (Eurostat SGA "Open source
tools").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import InvalidParameter, ShapeMismatch
from scipy.optimize import linear_sum_assignment

#: Maximum number of units that are assigned to donors together, and number of nearest donors considered for
#: each unit.
BATCH, CANDIDATES = 128, 16
#: Maximum number of donors of one profile that are compared with a batch. If there are more, the first ones
#: in the drawn order are used.
DONORS = 4096
#: Price of an exchange that is not allowed.
_FORBIDDEN = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Swaps:
    """Pairs of units that exchange their geography.

    Attributes
    ----------
    partner : (n,) int64 array
        Position of the unit whose geography a unit receives; the unit's own position if it is not exchanged.
        Partners are mutual.
    level : (n,) int64 array
        Coarsest level at which the geography of a unit changes; -1 if it does not change.
    unmatched : (levels,) int64 array
        Number of units at risk at each level for which no partner of any profile was left.
    """

    partner: np.ndarray
    level: np.ndarray
    unmatched: np.ndarray

    @property
    def exchanged(self) -> np.ndarray:
        """Return whether each unit takes part in an exchange, (n,) bool."""
        return self.level >= 0


def swap(
    geography: np.ndarray,
    at_risk: np.ndarray,
    profiles: np.ndarray,
    features: np.ndarray,
    order: np.ndarray,
    *,
    rate: float = 0.05,
    levels: range | None = None,
    above: Sequence[int] | None = None,
    taken: np.ndarray | None = None,
) -> Swaps:
    """Choose pairs of units that exchange their geography.

    Parameters
    ----------
    geography : (n, levels) integer array
        Area of each unit by level, in the order of their exchange; areas are numbered across the whole file.
        The last level is the one at which the rate is met.
    at_risk : (n, levels) bool array
    profiles : (n, profiles) integer array
        Similarity profiles of each unit, the strictest first. The last profile may be constant, so that any
        unit fits.
    features : (n, variables) integer array
        Categories of the risk variables; the cost of an exchange is the number of risk variables in which the
        two units differ, at least one.
    order : (n,) integer array
        Distinct keyed random numbers that determine the order of the units.
    rate : float
        Minimum share of exchanged units, reached at the finest level as far as donors allow.
    levels : range, optional
        Levels at which units are exchanged, by default all.
    above : sequence of int, optional
        For each level, the level within whose areas units are exchanged; -1 for the whole file. By default it
        is the level before.
    taken : (n,) bool array, optional
        Units that were exchanged before. They are not exchanged again and count towards the rate.

    Raises
    ------
    ShapeMismatch, InvalidParameter
    """
    geography, at_risk = np.asarray(geography, np.int64), np.asarray(at_risk, bool)
    profiles, features = np.asarray(profiles, np.int64), np.asarray(features, np.int64)
    units, depth = geography.shape
    if at_risk.shape != geography.shape or not len(profiles) == len(features) == len(order) == units:
        raise ShapeMismatch(
            "geography, at_risk, profiles, features and order: expected one row for each unit, found "
            "other lengths"
        )
    if not 0 <= rate <= 1:
        raise InvalidParameter(f"rate: expected a share from 0 to 1, found {rate!r}")
    if len(np.unique(order)) < units:
        raise InvalidParameter("order: expected a different number for each unit, found equal ones")
    rank = np.empty(units, np.int64)
    rank[np.argsort(order)] = np.arange(units)
    codes = [np.unique(each, return_inverse=True)[1].astype(np.int32) for each in features.T]
    state = _State(geography, profiles, codes, rank, np.arange(units), np.full(units, -1))
    if taken is not None:
        state.level[taken] = depth
    unmatched = np.zeros(depth, np.int64)
    for level in range(depth) if levels is None else levels:
        for inside in _areas_above(geography, level - 1 if above is None else above[level]):
            waiting = inside[at_risk[inside, level] & (state.level[inside] < 0)]
            unmatched[level] += state.exchange(waiting, inside, level)
            if level == depth - 1:
                missing = int(np.ceil(rate * len(inside))) - int((state.level[inside] >= 0).sum())
                state.exchange_more(inside, level, missing)
    state.level[state.level == depth] = -1
    return Swaps(state.partner, state.level, unmatched)


def _areas_above(geography: np.ndarray, above: int) -> Iterator[np.ndarray]:
    """Return the units of each area at the next coarser level; all units if there is none (-1)."""
    if above < 0:
        yield np.arange(len(geography))
        return
    order = np.argsort(geography[:, above], kind="stable")
    areas = geography[order, above]
    yield from np.split(order, np.flatnonzero(np.diff(areas)) + 1)


@dataclass
class _State:
    """Units during the exchange; `rank` is their drawn order, `features` contains the codes of each
    variable.
    """

    geography: np.ndarray
    profiles: np.ndarray
    features: list[np.ndarray]
    rank: np.ndarray
    partner: np.ndarray
    level: np.ndarray

    def exchange(self, waiting: np.ndarray, inside: np.ndarray, level: int) -> int:
        """Exchange units with donors, profile by profile; return the number of units for which no donor was
        found.

        Donors that do not need an exchange themselves are used first; then units that need an exchange are
        exchanged with each other.
        """
        for profile in range(self.profiles.shape[1]):
            for among_waiting in (False, True):
                waiting = waiting[self.level[waiting] < 0]
                if not len(waiting):
                    return 0
                free = waiting if among_waiting else np.setdiff1d(inside[self.level[inside] < 0], waiting)
                for group, donors in self._groups(waiting, free, profile):
                    self._assign(group, donors, level)
        return int((self.level[waiting] < 0).sum())

    def exchange_more(self, inside: np.ndarray, level: int, missing: int) -> None:
        """Exchange `number` further units in the drawn order, or one more, because units are exchanged in
        pairs.
        """
        while missing > 0:
            free = inside[self.level[inside] < 0]
            first = free[np.argsort(self.rank[free])][: (missing + 1) // 2]
            before = len(free)
            self.exchange(first, inside, level)
            exchanged = before - int((self.level[inside] < 0).sum())
            if not exchanged:
                return
            missing -= exchanged

    def _groups(
        self, waiting: np.ndarray, free: np.ndarray, profile: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Return groups of units and donors that agree in all variables of a profile, both in the drawn
        order.
        """
        waiting, free = (each[np.argsort(self.rank[each])] for each in (waiting, free))
        wanted, offered = self.profiles[waiting, profile], self.profiles[free, profile]
        by_wanted, by_offered = np.argsort(wanted, kind="stable"), np.argsort(offered, kind="stable")
        values, starts = np.unique(wanted[by_wanted], return_index=True)
        ends = np.append(starts[1:], len(wanted))
        left = np.searchsorted(offered[by_offered], values, "left")
        right = np.searchsorted(offered[by_offered], values, "right")
        for start, end, low, high in zip(starts, ends, left, right, strict=True):
            if high > low:
                yield waiting[by_wanted[start:end]], free[by_offered[low:high]]

    def _assign(self, group: np.ndarray, donors: np.ndarray, level: int) -> None:
        """Exchange units with donors of other areas at the least cost, batch by batch."""
        near, next_donor = donors[:0], 0
        for begin in range(0, len(group), BATCH):
            batch = group[begin : begin + BATCH]
            batch, near = batch[self.level[batch] < 0], near[self.level[near] < 0]
            while len(near) < DONORS and next_donor < len(donors):
                more = donors[next_donor : next_donor + DONORS - len(near)]
                next_donor += len(more)
                near = np.concatenate([near, more[self.level[more] < 0]])
            if not len(batch) or not len(near):
                continue
            price = self._prices(batch, near, level)
            candidates = np.argpartition(price, min(CANDIDATES, len(near)) - 1, axis=1)[:, :CANDIDATES]
            possible = np.take_along_axis(price, candidates, axis=1) < _FORBIDDEN
            kept = np.unique(candidates[possible])
            if len(kept):
                chosen = price[:, kept]
                costs = np.where(chosen < _FORBIDDEN, chosen / (2.0 * len(near)), np.inf)
                self._pair(batch, near[kept], costs, level)

    def _prices(self, batch: np.ndarray, near: np.ndarray, level: int) -> np.ndarray:
        """Return the cost of each exchange; ties are resolved by the donor's position in the drawn order.

        Returns
        -------
        (batch, near) int32 array
            Number of differing variables times twice the number of donors, plus the donor's position in the
            drawn order; `_FORBIDDEN` if the two may not be exchanged.
        """
        price = np.zeros((len(batch), len(near)), np.int32)
        for variable in self.features:
            price += variable[batch][:, None] != variable[near]
        area = self.geography[:, level]
        apart = (price > 0) & (area[batch][:, None] != area[near])
        price *= 2 * len(near)
        price += np.arange(len(near), dtype=np.int32)
        price[~apart] = _FORBIDDEN
        return price

    def _pair(self, batch: np.ndarray, near: np.ndarray, price: np.ndarray, level: int) -> None:
        forbidden = 2.0 * (len(self.features) + 1) * (len(batch) + 1)
        rows, columns = linear_sum_assignment(np.where(np.isfinite(price), price, forbidden))
        for row, column in zip(rows, columns, strict=True):
            unit, donor = batch[row], near[column]
            # if both partners need an exchange, a unit may be chosen once as unit and once as donor
            if np.isfinite(price[row, column]) and self.level[unit] < 0 and self.level[donor] < 0:
                self.partner[unit], self.partner[donor] = donor, unit
                self.level[unit] = self.level[donor] = level
