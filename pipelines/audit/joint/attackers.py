"""Count of the secrets that each kind of attacker learns in a component of the system.

All attackers have all published numbers, know the method, and know that no amount is negative. In addition:

outsider
    knows nothing else.
contributor
    knows the own value: if unknowns move together in the null space, one known value determines all of them.
second
    is the second largest contributor of a cell: knows the own value and that only one other value is larger.
growth
    knows last period's true value of a cell, and that the value changed by at most `GROWTH`.
member
    knows who is in a set of fewer than k units, and so learns their mean from the total of the set.
list
    knows the list of values that a unit can have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from microguard.pipelines.audit.joint.components import MOST_UNITS
from microguard.pipelines.audit.joint.intervals import (
    KNOWN_WITHIN,
    Contradiction,
    Elimination,
    consistent_part,
    eliminate,
    feasible_range,
    known_within,
    narrowed,
    propagate,
)
from microguard.pipelines.audit.joint.system import System

#: Largest relative change between two periods that the attacker "growth" assumes.
GROWTH = 0.1
#: Maximum size of a component that is solved by exact elimination (0.3 s) and by linear programs.
DENSE, PROGRAMS = 600, 5_000
#: Linear programs: maximum number of examined unknowns of a component, and maximum number of iterations.
MOST_EXAMINED, ITERATIONS = 64, 200_000
#: Maximum number of enumerated sums of list values for a set of units: that of three units and 200 values.
MOST_SUMS = 1_500_000
ATTACKERS = ("outsider", "contributor", "second", "growth", "member", "list")


@dataclass(frozen=True)
class Learnt:
    """Number of secrets that each attacker learns within 1 %.

    Attributes
    ----------
    known : tuple of int
        Secrets learnt, by attacker, in the order of `ATTACKERS`.
    of : tuple of int
        Secrets that the attacker could learn.
    sampled : int
        Secrets that were not examined because the component is large.
    contradictory : int
        Components whose statements contradict each other.
    not_listed : int
        Sets of units whose multisets of list values were not enumerated because there are too many.
    """

    known: tuple[int, ...] = (0,) * len(ATTACKERS)
    of: tuple[int, ...] = (0,) * len(ATTACKERS)
    sampled: int = 0
    contradictory: int = 0
    not_listed: int = 0

    @classmethod
    def from_list(cls, values: list[Any]) -> Learnt:
        """Build the counts from a stored list of their attributes."""
        known, of, *rest = values
        return cls(tuple(known), tuple(of), *rest)

    def __add__(self, other: Learnt) -> Learnt:
        """Add the counts of two components."""
        return Learnt(
            tuple(a + b for a, b in zip(self.known, other.known, strict=True)),
            tuple(a + b for a, b in zip(self.of, other.of, strict=True)),
            self.sampled + other.sampled,
            self.contradictory + other.contradictory,
            self.not_listed + other.not_listed,
        )


def learnt(system: System) -> Learnt:
    """Count the secrets that the attackers learn in a component.

    If statements contradict each other, the contradiction is counted and the attackers use the statements
    that agree. Such a component is not examined if it is too large for linear programs.
    """
    try:
        return _learnt(system)
    except Contradiction:
        found = Learnt(contradictory=1)
    if len(system) > PROGRAMS:
        return found
    try:
        return found + _learnt(consistent_part(system))
    except Contradiction:
        return found


def _learnt(system: System) -> Learnt:
    lower, upper = propagate(system, *system.bounds())
    elimination = None
    if len(system) <= DENSE:
        elimination = eliminate(system, lower, upper)
        lower, upper = narrowed(system, lower, upper, elimination)
    single = system.secret | ((system.units > 0) & (system.units < system.k))
    open_secrets = np.flatnonzero(single & ~known_within(lower, upper, system.whole))
    left = len(open_secrets)
    if len(system) <= PROGRAMS:
        lower, upper, left = feasible_range(system, lower, upper, open_secrets, MOST_EXAMINED, ITERATIONS)
        lower, upper = propagate(system, lower, upper)
    known = known_within(lower, upper, system.whole) & _right(system, lower, upper)
    alone = _alone(system, known & single)
    news = known & ~alone
    values, sums = system.secret, single & ~system.secret
    growth, predecessors = _by_growth(system, lower, upper)
    second, pairs = _by_second(system, upper)
    if elimination is None:
        contributors, others = 0, 0
        left += int(((system.units == 1) & ~known).sum())
    else:
        contributors, others = _by_contributor(system, elimination, known)
    contributors += 2 * int((news & (system.units == 2)).sum())
    others += 2 * int((system.units == 2).sum())
    listed, listable, not_listed = _by_list(system, lower, upper)
    return Learnt(
        (int((news & values).sum()), contributors, second, growth, int((news & sums).sum()), listed),
        (int(values.sum()), others, pairs, predecessors, int(sums.sum()), listable),
        left,
        not_listed=not_listed,
    )


def _right(system: System, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return whether an interval contains the true value; True if that value is unknown."""
    slack = 1e-6 * (1.0 + np.abs(np.nan_to_num(system.truth)))
    with np.errstate(invalid="ignore"):
        return np.asarray(
            np.isnan(system.truth) | ((system.truth >= lower - slack) & (system.truth <= upper + slack))
        )


def _alone(system: System, known: np.ndarray) -> np.ndarray:
    """Return the unknowns that a single release determines alone, which the audit of that release allows."""
    alone = np.zeros(len(system), bool)
    wanted = np.flatnonzero(known)
    if not len(wanted):
        return alone
    releases = np.unique(np.concatenate([system.said_release, system.row_release]))
    for release in releases[releases >= 0]:
        part = system.of_release(int(release))
        try:
            lower, upper = propagate(part, *part.bounds())
            if len(part) <= DENSE:
                lower, upper = narrowed(part, lower, upper, eliminate(part, lower, upper))
            if len(part) <= PROGRAMS:
                lower, upper, _ = feasible_range(part, lower, upper, wanted, MOST_EXAMINED, ITERATIONS)
        except Contradiction:
            continue
        own = system.units > 0
        own[part.said[part.said_secret]] = True
        alone |= known & known_within(lower, upper, system.whole) & own
    return alone


def _by_contributor(system: System, elimination: Elimination, known: np.ndarray) -> tuple[int, int]:
    """Count the values of units that are known only through the value of another unit."""
    atoms = np.flatnonzero((system.units == 1) & ~known)
    if len(atoms) < 2 or system.whole:
        return 0, len(atoms)
    null = elimination.null[atoms]
    size = np.sqrt((null**2).sum(axis=1))
    moves = size > 1e-6
    atoms, null, size = atoms[moves], null[moves], size[moves]
    if not len(atoms):
        return 0, 0
    unit = null / size[:, None]
    lead = np.argmax(np.abs(unit) > 1e-6, axis=1)
    unit *= np.sign(unit[np.arange(len(unit)), lead])[:, None]
    together = np.abs(unit @ unit.T) > 1 - 1e-9
    holder = system.holder[atoms]
    together &= holder[:, None] != holder  # a contributor knows all its own values
    victims = 0
    for victim in np.flatnonzero(together.any(axis=1)):
        for attacker in np.flatnonzero(together[victim]):
            ratio = float(null[victim] @ null[attacker]) / float(size[attacker] ** 2)
            direction = np.zeros((1, len(system)))
            direction[0, atoms[victim]], direction[0, atoms[attacker]] = 1.0, -ratio
            if not _is_one_set(system, atoms[victim], atoms[attacker]):
                low, high = elimination.interval(direction)
                # the attacker's own value is not known here; the victim's value is at most about the sum
                if high[0] - low[0] <= 2 * KNOWN_WITHIN * max(abs(low[0] + high[0]) / 4, 1e-300):
                    victims += 1
                    break
    return victims, len(atoms)


def _is_one_set(system: System, one: int, other: int) -> bool:
    """Return whether one release alone publishes the sum of two units, which its own rule allows."""
    columns = system.rows.tocsc()
    shared = np.intersect1d(
        *(columns.indices[columns.indptr[i] : columns.indptr[i + 1]] for i in (one, other))
    )
    return bool(((np.diff(system.rows.indptr)[shared] == 2) & (system.row_release[shared] >= 0)).any())


def _by_second(system: System, upper: np.ndarray) -> tuple[int, int]:
    """Count the sensitive cells whose second largest contributor can estimate the largest within 1 %."""
    pairs = system.secret & (system.units == 0) & (system.second > 0)
    joint = _second_knows(system, upper)
    alone = np.zeros(len(system), bool)
    for release in np.unique(system.said_release[system.said_secret]):
        part = system.of_release(int(release))
        try:
            alone |= _second_knows(system, propagate(part, *part.bounds())[1])
        except Contradiction:
            continue
    return int((pairs & joint & ~alone).sum()), int(pairs.sum())


def _second_knows(system: System, upper: np.ndarray) -> np.ndarray:
    """Return whether the total minus the attacker's own value is within 1 % of the largest (p % rule with p =
    1).
    """
    with np.errstate(invalid="ignore"):
        error = np.abs(upper - system.second - system.largest)
        return np.asarray(error <= KNOWN_WITHIN * system.largest)


def _by_growth(system: System, lower: np.ndarray, upper: np.ndarray) -> tuple[int, int]:
    """Count the sensitive cells whose value follows within 1 % from the true value of the previous period."""
    wanted = np.flatnonzero(system.secret & (system.last > 0) & ~system.whole)
    found = 0
    for unknown in wanted:
        last = system.last[unknown]
        low, high = max(lower[unknown], last * (1 - GROWTH)), min(upper[unknown], last * (1 + GROWTH))
        pieces = [(low, high)]
        for place in np.flatnonzero((system.said == unknown) & (system.said_gap > 0)):
            shown, gap = system.said_shown[place], system.said_gap[place]
            pieces = [piece for low, high in pieces for piece in
                      ((low, min(high, shown - gap)), (max(low, shown + gap), high))]  # fmt: skip
        length = sum(max(high - low, 0.0) for low, high in pieces)
        truth = system.truth[unknown]
        inside = any(low - 1e-9 <= truth <= high + 1e-9 for low, high in pieces)
        found += int(inside and length <= 2 * KNOWN_WITHIN * abs(truth))
    return int(found), len(wanted)


def _by_list(system: System, lower: np.ndarray, upper: np.ndarray) -> tuple[int, int, int]:
    """Count the sets of units whose values are determined as a multiset of list values, except by one release
    alone.

    Returns
    -------
    found, examined, not_examined : int
    """
    if not len(system.values):
        return 0, 0, 0
    small = np.flatnonzero((system.units > 0) & (system.units <= MOST_UNITS))
    counts = [math.comb(len(system.values) + int(units) - 1, int(units)) for units in system.units[small]]
    sets = small[np.array(counts, np.int64) <= MOST_SUMS]
    joint = _multisets(system, lower, upper, sets)
    one = sets[joint == 1]
    alone = np.zeros(len(system), bool)
    for release in np.unique(system.row_release[system.row_release >= 0]) if len(one) else ():
        part = system.of_release(int(release))
        try:
            bounds = propagate(part, *part.bounds())
        except Contradiction:
            continue
        alone[one] |= _multisets(system, *bounds, one) == 1
    return int((~alone[one]).sum()), len(sets), len(small) - len(sets)


def _multisets(system: System, lower: np.ndarray, upper: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """Return for each set of units the number of multisets of list values whose sum is in the interval."""
    count = np.zeros(len(sets), np.int64)
    for units in np.unique(system.units[sets]):
        sums = _sums(system.values.tobytes(), int(units))
        mine = system.units[sets] == units
        slack = 1e-9 * np.abs(sums).max()
        low, high = lower[sets[mine]] - slack, upper[sets[mine]] + slack
        count[mine] = np.searchsorted(sums, high, "right") - np.searchsorted(sums, low, "left")
    return count


@lru_cache(maxsize=MOST_UNITS)
def _sums(content: bytes, units: int) -> np.ndarray:
    """Return the sorted sums of all multisets of the given values."""
    values = np.frombuffer(content)
    sums, last = np.zeros(1), np.zeros(1, np.int64)
    for _ in range(units):
        counts = len(values) - last
        last = np.concatenate([np.arange(each, len(values)) for each in last])
        sums = np.repeat(sums, counts) + values[last]
    return np.sort(sums)
