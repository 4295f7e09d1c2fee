"""The gap closed level by level: complete lists of clusters, first of the roots of largest dual.

Every partition P costs at least ``bound + sum over its clusters of max(0, reduced cost)``, and every
cluster has one root, its record of largest dual. Let v be the least such sum that clusters with roots among
the first m records can have in a partition. So the partitions better than the incumbent, of gap g, hold no
other cluster with a reduced cost of g - v or more: the clusters of the next roots are listed up to there,
and so on, as many roots at a time as a program has room for. v is the value of an integer program over the
lists: clusters that hold each of the first m records once and every other record at most once. A few dear
records decide most of the gap; once these are settled, the lists of all others are short. At the last level
the program is the set-partitioning program itself, with the costs themselves, and its solution optimal.

A small file is one level: its first records settle nothing. Branching on pairs within the list solves it, and
where the list below the gap is too long, one below a part of it.

Reduced-cost fixing as in Baldacci, Christofides and Mingozzi 2008, "An exact algorithm for the vehicle
routing problem based on the set partitioning formulation with additional cuts", over one part of the rows
after another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.microaggregation.certified.list_branching import branch_in_list
from microguard.sdc.microaggregation.certified.relaxation import CLOSED, Relaxation
from microguard.sdc.microaggregation.column_generation.master import cut_entries, cut_limits
from microguard.sdc.solver import INFINITY, Limits, Program, Status, solve
from microguard.sdc.stop import Deadline
from scipy import sparse

#: Clusters that may be listed up to a level, as shares of the largest program: the first programs are small
#: and settle most of the gap, so that the lists of the later roots are short.
SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)
#: A file of so few records is one level.
ONE_LEVEL = 200
#: Columns that the nodes of branching within a list may have in all, per column of the largest program.
LOOKS = 40
#: Share of the gap that all clusters are listed below at first: much of the gap is often the incumbent's,
#: and the optimum is in a much smaller program.
GUESS = 1 / 2
#: Thresholds tried where the list of the next root alone is too long, as shares of what is left of the gap.
THRESHOLDS = (1 / 2, 1 / 4, 1 / 8)


@dataclass(frozen=True)
class Listing:
    """Clusters listed per root and in all, and branch-and-bound nodes of a program, at most."""

    per_root: int
    largest_program: int
    nodes: int


@dataclass(frozen=True)
class Closed:
    """What the levels reached.

    Attributes
    ----------
    chosen : (clusters,) int array
        Columns of the cheapest partition met.
    lower_bound : float
        On the cost of any partition; the cost of `chosen` where that was proved optimal.
    nodes : int
        Branch-and-bound nodes.
    """

    chosen: np.ndarray
    lower_bound: float
    nodes: int


def close(relaxation: Relaxation, incumbent: np.ndarray, listing: Listing, deadline: Deadline) -> Closed:
    """Raise the bound of a relaxation by complete lists of clusters.

    Parameters
    ----------
    relaxation : Relaxation
        With a finite `lower_bound`.
    incumbent : (clusters,) int array
        Positions of columns that partition the records.
    listing : Listing
    deadline : Deadline
        Safety net.
    """
    columns, bound = relaxation.columns, relaxation.lower_bound
    n, order = len(columns.distances), relaxation.records_by_dual
    if n <= ONE_LEVEL:
        return _close_at_once(relaxation, incumbent, listing, deadline)
    place = np.empty(n + 1, dtype=np.int64)
    place[order], place[n] = np.arange(n), n  # the filler -1 comes last
    pool = np.empty(0, dtype=np.int64)
    incumbent, guessed, nodes = _guess(relaxation, incumbent, listing, deadline)
    settled, first, level = 0.0, 0, 0
    while first < n:
        cost = float(columns.costs[incumbent].sum())
        left = cost - bound - settled
        if cost - bound - max(settled, guessed) <= CLOSED * cost or deadline.passed:
            break
        share = SHARES[min(level, len(SHARES) - 1)]
        level += 1
        listed, last, threshold = _list(relaxation, left, first, share, listing, len(pool))
        if last == first and share == 1.0:
            break
        if last == first:
            continue
        wider = np.union1d(pool, columns.positions(listed))
        roots = place[columns.members[incumbent]].min(axis=1)
        value, chosen, more = _solve_level(
            relaxation, np.union1d(wider, incumbent[roots < last]), incumbent, order[:last], listing, deadline
        )
        nodes += more
        if last == n and columns.costs[chosen].sum() < cost:
            incumbent = chosen
        if threshold < left:  # a partition may hold a cluster that is not listed
            settled = max(settled, min(value, settled + threshold))
            break
        settled = max(settled, value)
        pool, first = wider, last
    cost = float(columns.costs[incumbent].sum())
    return Closed(incumbent, min(cost, bound + max(settled, guessed)), nodes)


def _close_at_once(
    relaxation: Relaxation, incumbent: np.ndarray, listing: Listing, deadline: Deadline
) -> Closed:
    """Branching within the longest list that there is room for, as long as it finds a cheaper partition: a
    smaller gap has a shorter list."""
    columns, n = relaxation.columns, relaxation.master.n
    bound = proved = relaxation.lower_bound
    cost, nodes = float(columns.costs[incumbent].sum()), 0
    while cost - proved > CLOSED * cost and not deadline.passed:
        for part in (1.0, *THRESHOLDS):
            threshold = part * (cost - bound)
            listed, last = relaxation.enumerate(
                threshold, 0, per_root=listing.per_root, most=listing.largest_program
            )
            if last == n:
                break
        else:
            break
        solved = branch_in_list(
            columns,
            np.union1d(columns.positions(listed), incumbent),
            relaxation.binding,
            incumbent,
            enough=bound + threshold,
            nodes=listing.nodes,
            looks=LOOKS * listing.largest_program,
            deadline=deadline,
        )
        nodes += solved.nodes
        proved = max(proved, solved.lower_bound)  # or a partition holds a cluster that is not listed
        before, incumbent = cost, solved.chosen
        cost = float(columns.costs[incumbent].sum())
        if cost >= before:
            break
    return Closed(incumbent, min(cost, proved), nodes)


def _guess(
    relaxation: Relaxation, incumbent: np.ndarray, listing: Listing, deadline: Deadline
) -> tuple[np.ndarray, float, int]:
    """The program over all clusters below a part of the gap: the incumbent, what it adds to the bound, nodes.

    A partition is among the clusters listed, or holds one whose reduced cost is the threshold or more.
    """
    columns, n = relaxation.columns, relaxation.master.n
    threshold = GUESS * (float(columns.costs[incumbent].sum()) - relaxation.lower_bound)
    if deadline.passed:
        return incumbent, 0.0, 0
    listed, last = relaxation.enumerate(threshold, 0, per_root=listing.per_root, most=listing.largest_program)
    if last < n:
        return incumbent, 0.0, 0
    level = np.union1d(columns.positions(listed), incumbent)
    value, chosen, nodes = _solve_level(
        relaxation, level, incumbent, relaxation.records_by_dual, listing, deadline
    )
    return chosen, min(value, threshold), nodes


def _list(
    relaxation: Relaxation, left: float, first: int, share: float, listing: Listing, there: int
) -> tuple[np.ndarray, int, float]:
    """Clusters of the next roots below a threshold, the place of the first root not listed, the threshold.

    As many roots as have room below what is left of the gap; where that is none, not even at the last level,
    all of them below a smaller threshold.
    """
    room = int(share * listing.largest_program) - there
    if room <= 0:
        return np.empty((0, 0)), first, left
    listed, last = relaxation.enumerate(left, first, per_root=listing.per_root, most=room)
    if last > first or share < 1.0:
        return listed, last, left
    n = relaxation.master.n
    for part in THRESHOLDS:
        listed, last = relaxation.enumerate(part * left, first, per_root=listing.per_root, most=room)
        if last == n:
            return listed, last, part * left
    return listed, first, left


def _solve_level(
    relaxation: Relaxation,
    level: np.ndarray,
    incumbent: np.ndarray,
    exactly: np.ndarray,
    listing: Listing,
    deadline: Deadline,
) -> tuple[float, np.ndarray, int]:
    """Lower bound on what covering the records `exactly` once adds to the bound; the columns; nodes."""
    columns = relaxation.columns
    n = len(columns.distances)
    incidence = columns.incidence(level)
    cuts = cut_entries(relaxation.binding, incidence)
    last_level = len(exactly) == n  # costs themselves: they leave no slack of cuts that a partition avoids
    at_least = np.zeros(n)
    at_least[exactly] = 1.0
    program = Program(
        costs=columns.costs[level] if last_level else np.maximum(0.0, relaxation.reduced_costs_of(level)),
        matrix=sparse.vstack([incidence, cuts]).tocsc(),
        row_lower=np.concatenate([at_least, np.full(cuts.shape[0], -INFINITY)]),
        row_upper=np.concatenate([np.ones(n), cut_limits(relaxation.binding)]),
        lower=np.zeros(len(level)),
        upper=np.ones(len(level)),
        integer=np.ones(len(level), dtype=bool),
    )
    start = np.isin(level, incumbent).astype(float)
    solution = solve(program, Limits(nodes=listing.nodes, seconds=deadline.remaining), start=start)
    if solution.status not in (Status.OPTIMAL, Status.FEASIBLE) or solution.values is None:
        return 0.0, incumbent, solution.nodes
    chosen = level[solution.values > 0.5]
    value = float(solution.bound) - (relaxation.lower_bound if last_level else 0.0)
    partitioned = last_level and columns.incidence(chosen).sum(axis=1).min() == 1.0
    return max(0.0, value), chosen if partitioned else incumbent, solution.nodes
