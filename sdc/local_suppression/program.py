"""Integer program of local suppression for a block of key combinations, with all other combinations fixed.

A group is a set of combinations that agree on the values that a pattern shows. Variables: y[c, P] is the
number of records of combination c that are published with pattern P, and z[g] is 1 if group g is used. A used
group must have at least k records. With z fixed, the remaining problem is a transportation problem with
integral vertices, so that only z has to be an integer variable. Groups of several patterns may have the same
combinations. Only the pattern that shows the most values is kept (a closed set), because it costs least.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.local_suppression.greedy import CATEGORY, Entries
from microguard.sdc.local_suppression.patterns import Keys, sums_by
from microguard.sdc.solver.program import INFINITY, Limits, Program, Status
from microguard.sdc.solver.solving import solve
from scipy import sparse

#: Smallest fraction that is rounded up to one record when a solution of the program is rounded.
_HALF = 0.5


@dataclass(frozen=True)
class Improved:
    """Improved entries of a block, their cost, its lower bound (with all other entries fixed), and the number
    of nodes.
    """

    entries: Entries
    cost: float
    bound: float
    optimal: bool
    nodes: int


@dataclass
class _Groups:
    """Groups of a block: pattern, number of records outside the block that count towards the group, and
    whether other groups depend on it.
    """

    pattern: list[int]
    outside: list[int]
    needed: list[bool]
    members: list[np.ndarray]
    kept: dict[tuple[int, int], int]  # (combination, pattern) -> number of its group


def improved(
    keys: Keys,
    k: int,
    missing: str,
    block: np.ndarray,
    entries: Entries,
    limits: Limits,
    most_columns: int,
    reach: np.ndarray | None = None,
) -> Improved | None:
    """Find the cheapest entries of some combinations, with the entries of all other combinations fixed.

    Parameters
    ----------
    block : (b,) int64 array
        Numbers of the combinations, ascending.
    entries : Entries
        Entries of all combinations. The entries of the block are the start solution.
    limits : Limits
        Work of branch and bound.
    most_columns : int
        Maximum number of columns; larger programs are not solved.

    Returns
    -------
    Improved or None
        None if the program is too large, or no solution was found within the limits.
    """
    inside = np.isin(entries.key, block)
    start, others = entries.where(inside), entries.where(~inside)
    groups = _groups(keys, k, missing, block, others)
    sizes = [len(each) for each in groups.members]
    pattern = np.array(groups.pattern, np.int64)
    group = np.repeat(np.arange(len(sizes)), sizes)
    member = np.concatenate(groups.members)
    if reach is not None:
        near = keys.price(pattern[group] & ~keys.missing[member]) <= reach[member]
        group, member = group[near], member[near]
    columns = len(group)
    if columns == 0 or columns > most_columns:
        return None
    outside, needed = np.array(groups.outside, np.int64), np.array(groups.needed)
    prices = keys.price(pattern[group] & ~keys.missing[member])
    supply = keys.counts[block]
    # the group has k records outside the block, so it needs neither a constraint nor a variable z
    open_group = outside >= k
    z = np.full(len(sizes), -1)
    z[~open_group] = columns + np.arange((~open_group).sum())
    total = columns + int((~open_group).sum())
    own, counted = _coverage(groups, missing, group, member, columns)
    closed = ~open_group[group]
    rows = [
        (np.searchsorted(block, member), np.arange(columns), np.ones(columns)),
        (own, counted, np.ones(len(own))),
        (np.flatnonzero(~open_group), z[~open_group], -(k - outside[~open_group]).astype(float)),
        (np.arange(closed.sum()), np.flatnonzero(closed), np.ones(closed.sum())),
        (np.arange(closed.sum()), z[group[closed]], -keys.counts[member[closed]].astype(float)),
    ]
    supplied = _matrix([rows[0]], len(block), total)
    covered = _matrix(rows[1:3], len(sizes), total)
    linked = _matrix(rows[3:], int(closed.sum()), total)
    lower, upper = np.zeros(total), np.ones(total)
    upper[:columns] = keys.counts[member]
    lower[z[needed & ~open_group]] = 1.0
    program = Program(
        costs=np.concatenate([prices, np.zeros(total - columns)]),
        matrix=sparse.vstack([supplied, covered, linked], format="csr"),
        row_lower=np.concatenate(
            [supply, np.where(open_group, -INFINITY, 0.0), np.full(linked.shape[0], -INFINITY)]
        ),
        row_upper=np.concatenate([supply, np.full(len(sizes), INFINITY), np.zeros(linked.shape[0])]),
        lower=lower,
        upper=upper,
        integer=np.arange(total) >= columns,
    )
    point = _start(groups, start, group, member, z, total)
    solution = solve(program, limits, start=point)
    if solution.values is None:
        return None
    used = solution.values[columns:] > _HALF
    counts = _whole(program, columns, used) if len(used) else solution.values[:columns]
    if counts is None:
        return None
    whole = np.rint(counts).astype(np.int64)
    found = Entries(member, pattern[group], whole).where(whole > 0)
    cost = found.cost(keys)
    optimal = solution.status is Status.OPTIMAL
    return Improved(found, cost, min(cost, solution.bound), optimal, solution.nodes)


def _groups(keys: Keys, k: int, missing: str, block: np.ndarray, others: Entries) -> _Groups:
    """Return the closed groups that the combinations of a block can form with at least k records."""
    names = np.random.default_rng(0).integers(1, 1 << 62, len(block))
    found: dict[tuple[int, int, bool], int] = {}
    groups = _Groups([], [], [], [], {})
    order = np.argsort([bin(each).count("1") for each in keys.patterns.tolist()], kind="stable")
    for each in keys.patterns[order].tolist():
        inside = block[keys.fits(each)[block]]
        if len(inside) == 0:
            continue
        labels = keys.labels(each)
        values, place = np.unique(labels[inside], return_inverse=True)
        fitting = others.where(keys.fits(each)[others.key])
        shown = fitting.where(fitting.showing(each, missing))
        alike = fitting.where(fitting.pattern == each)
        outside = sums_by(values, labels[shown.key], shown.count)
        depends = sums_by(values, labels[alike.key], alike.count) > 0
        records = np.bincount(place, keys.counts[inside], len(values)).astype(np.int64)
        member_name = np.zeros(len(values), np.int64)
        np.add.at(member_name, place, names[np.searchsorted(block, inside)])
        by_group = np.argsort(place, kind="stable")
        ends = np.cumsum(np.bincount(place, minlength=len(values)))
        for number in np.flatnonzero(records + outside >= k).tolist():
            members = inside[by_group[ends[number - 1] if number else 0 : ends[number]]]
            needed = bool(depends[number] and outside[number] < k)
            key = (int(member_name[number]), int(outside[number]), needed)
            kept = found.get(key)
            if kept is None or needed:
                kept = found[key] = len(groups.pattern)
                groups.pattern.append(each)
                groups.outside.append(int(outside[number]))
                groups.needed.append(needed)
                groups.members.append(members)
            for c in members.tolist():
                groups.kept[c, each] = kept
    return groups


def _coverage(
    groups: _Groups, missing: str, group: np.ndarray, member: np.ndarray, columns: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of a group and a column whose records count towards the group."""
    if missing == CATEGORY:
        return group, np.arange(columns)
    by_member: dict[int, list[int]] = {}
    for column, c in enumerate(member.tolist()):
        by_member.setdefault(c, []).append(column)
    own, counted = [], []
    for number, members in enumerate(groups.members):
        hidden = ~groups.pattern[number]
        for c in members.tolist():
            for column in by_member[c]:
                if groups.pattern[group[column]] & hidden == 0:
                    own.append(number)
                    counted.append(column)
    return np.array(own, np.int64), np.array(counted, np.int64)


def _matrix(
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], rows: int, columns: int
) -> sparse.csr_matrix:
    row, column, value = (np.concatenate([part[i] for part in parts]) for i in range(3))
    return sparse.csr_matrix((value, (row, column)), (rows, columns))


def _start(
    groups: _Groups, start: Entries, group: np.ndarray, member: np.ndarray, z: np.ndarray, total: int
) -> np.ndarray | None:
    """Return the current entries as a start solution of the program; None if an entry has no group."""
    column = {(int(c), int(g)): i for i, (c, g) in enumerate(zip(member, group, strict=True))}
    point = np.zeros(total)
    for c, pattern, count in zip(
        start.key.tolist(), start.pattern.tolist(), start.count.tolist(), strict=True
    ):
        number = groups.kept.get((c, pattern))
        if number is None:
            return None
        point[column[c, number]] += count
        if z[number] >= 0:
            point[z[number]] = 1.0
    point[z[np.flatnonzero(np.array(groups.needed) & (z >= 0))]] = 1.0
    return point


def _whole(program: Program, columns: int, used: np.ndarray) -> np.ndarray | None:
    """Solve again with the used groups fixed: this is a transportation problem, whose vertices are whole
    numbers.
    """
    lower, upper = program.lower.copy(), program.upper.copy()
    lower[columns:] = upper[columns:] = used
    again = Program(program.costs, program.matrix, program.row_lower, program.row_upper, lower, upper)
    solution = solve(again, Limits(options={"solver": "simplex"}))
    return None if solution.values is None else solution.values[:columns]
