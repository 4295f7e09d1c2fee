"""Close the gap between incumbent and bound level by level: enumerate clusters in descending order of the
duals of their roots.

Every partition costs at least ``bound + sum over its clusters of max(0, reduced cost)``. Every cluster has
one root, its record with the largest dual. Let v be the least such sum over the clusters with roots among the
first m records of a partition. A partition that improves on the incumbent, with gap g, contains no other
cluster with a reduced cost of g - v or more. The clusters of the next roots are therefore enumerated up to
g - v, for as many roots as an integer program allows. v is the value of an integer program over the
enumerated clusters: each of the first m records is covered once, every other record at most once. A few
expensive records determine most of the gap; after them, the enumerations of the others are short. At the last
level, the program is the set-partitioning program with the original costs, and its solution is optimal.

A small file has one level, because its first records determine little. Branching on pairs within the
enumerated clusters solves it. If there are too many clusters below the gap, those below a share of the gap
are enumerated.

This is reduced-cost fixing as in Baldacci, Christofides and Mingozzi 2008, "An exact algorithm for the
vehicle routing problem based on the set partitioning formulation with additional cuts", applied to successive
sets of rows.
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

#: Limits on enumerated clusters. First: shares of the largest program that limit the clusters up to each
#: level, ascending. Second: shares of the gap that are tried as thresholds if a list is too long, descending.
#: Successive shares differ by a factor of two, this many times. The first programs are small and determine
#: most of the gap, so that the enumerations of later roots are short.
HALVINGS = 3
#: Maximum number of records of a file with one level, whose programs prove most optima.
ONE_LEVEL = 200
#: Limit on the total number of columns in all nodes of branching, as a multiple of the columns of the largest
#: program.
LOOKS = 40


@dataclass(frozen=True)
class Listing:
    """Limits: enumerated clusters per root and in total, and nodes of an integer program."""

    per_root: int
    largest_program: int
    nodes: int


@dataclass(frozen=True)
class Closed:
    """Result of closing the gap over all levels.

    Attributes
    ----------
    chosen : (clusters,) int array
        Columns of the best partition.
    lower_bound : float
        Bound on the cost of every partition. It equals the cost of `chosen` if that is proved optimal.
    nodes : int
        Number of branch-and-bound nodes.
    """

    chosen: np.ndarray
    lower_bound: float
    nodes: int


def close(relaxation: Relaxation, incumbent: np.ndarray, listing: Listing, deadline: Deadline) -> Closed:
    """Raise the lower bound of a relaxation by complete enumeration of clusters.

    Parameters
    ----------
    relaxation : Relaxation
        Relaxation with a finite `lower_bound`.
    incumbent : (clusters,) int array
        Positions of columns that partition the records.
    listing : Listing
    deadline : Deadline
        Wall-clock limit, as a safety net.
    """
    columns, bound = relaxation.columns, relaxation.lower_bound
    n, order = len(columns.distances), relaxation.records_by_dual
    if n <= ONE_LEVEL:
        return _close_at_once(relaxation, incumbent, listing, deadline)
    place = np.empty(n + 1, dtype=np.int64)
    place[order], place[n] = np.arange(n), n  # the padding -1 is sorted last
    pool = np.empty(0, dtype=np.int64)
    incumbent, guessed, nodes = _guess(relaxation, incumbent, listing, deadline)
    settled, first, level = 0.0, 0, 0
    while first < n:
        cost = float(columns.costs[incumbent].sum())
        left = cost - bound - settled
        if cost - bound - max(settled, guessed) <= CLOSED * cost or deadline.passed:
            break
        share = min(1.0, 0.5 ** (HALVINGS - level))
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
        if threshold < left:  # a cheaper partition may contain a cluster that was not enumerated
            settled = max(settled, min(value, settled + threshold))
            break
        settled = max(settled, value)
        pool, first = wider, last
    cost = float(columns.costs[incumbent].sum())
    return Closed(incumbent, min(cost, bound + max(settled, guessed)), nodes)


def _close_at_once(
    relaxation: Relaxation, incumbent: np.ndarray, listing: Listing, deadline: Deadline
) -> Closed:
    """Branch within the largest possible enumeration; repeat while a cheaper partition is found.

    A cheaper incumbent has a smaller gap, and thus fewer clusters to enumerate.
    """
    columns, n = relaxation.columns, relaxation.master.n
    bound = proved = relaxation.lower_bound
    cost, nodes = float(columns.costs[incumbent].sum()), 0
    while cost - proved > CLOSED * cost and not deadline.passed:
        for halving in range(HALVINGS + 1):
            threshold = 0.5**halving * (cost - bound)
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
        # limited to the threshold, which bounds all partitions with clusters outside the list
        proved = max(proved, solved.lower_bound)
        before, incumbent = cost, solved.chosen
        cost = float(columns.costs[incumbent].sum())
        if cost >= before:
            break
    return Closed(incumbent, min(cost, proved), nodes)


def _guess(
    relaxation: Relaxation, incumbent: np.ndarray, listing: Listing, deadline: Deadline
) -> tuple[np.ndarray, float, int]:
    """Solve the program over clusters whose reduced cost is below half of the gap; return incumbent, bound
    increase and nodes.

    Often the incumbent is far from optimal, and this much smaller program contains the optimum. Every
    partition consists of enumerated clusters only, or contains a cluster whose reduced cost is at least the
    threshold.
    """
    columns, n = relaxation.columns, relaxation.master.n
    threshold = (float(columns.costs[incumbent].sum()) - relaxation.lower_bound) / 2.0
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
    """Enumerate the clusters of the next roots; return the clusters, the position of the next root, and the
    threshold.

    The threshold is the remaining gap, for as many roots as possible. If no root fits at the last level, all
    roots are enumerated with a smaller threshold.
    """
    room = int(share * listing.largest_program) - there
    if room <= 0:
        return np.empty((0, 0)), first, left
    listed, last = relaxation.enumerate(left, first, per_root=listing.per_root, most=room)
    if last > first or share < 1.0:
        return listed, last, left
    n = relaxation.master.n
    for halving in range(1, HALVINGS + 1):
        threshold = 0.5**halving * left
        listed, last = relaxation.enumerate(threshold, first, per_root=listing.per_root, most=room)
        if last == n:
            return listed, last, threshold
    return listed, first, left


def _solve_level(
    relaxation: Relaxation,
    level: np.ndarray,
    incumbent: np.ndarray,
    exactly: np.ndarray,
    listing: Listing,
    deadline: Deadline,
) -> tuple[float, np.ndarray, int]:
    """Solve the program of a level; return the bound increase, the chosen columns and the number of nodes.

    Each of the records `exactly` is covered once, every other record at most once.
    """
    columns = relaxation.columns
    n = len(columns.distances)
    incidence = columns.incidence(level)
    cuts = cut_entries(relaxation.binding, incidence)
    last_level = len(exactly) == n  # then the exact original costs are used
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
