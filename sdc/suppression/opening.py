"""Pattern for very large tables: for one primary cell after the other, suppress the cells of its cheapest
witness; then trim the pattern.

Nine of ten primaries have a unit witness of cells that are already suppressed, or share the witness of
another primary. For the other primaries, a linear program over at most 2,000 cells near the primary chooses
further cells. No program covers the whole table, and cells are not chosen jointly, so the pattern costs more
than a pattern of `LargeTable`. The lower bound is a dual solution of the cuts of single relations. Effort and
seed have no effect.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from microguard.sdc.errors import SolverFailed
from microguard.sdc.stop import Deadline, StoppedBy
from microguard.sdc.suppression.cuts import impossible
from microguard.sdc.suppression.knowledge import OUTSIDER
from microguard.sdc.suppression.pattern import Pattern, Witness
from microguard.sdc.suppression.problem import PROVED
from microguard.sdc.suppression.separation import Separation
from microguard.sdc.suppression.witnesses import Witnesses

#: Maximum number of witness searches while cells are published again, most expensive first.
_SEARCHES = 5_000


def very_large_table(separation: Separation, deadline: Deadline) -> tuple[np.ndarray, float, StoppedBy]:
    """Return a pattern, a lower bound, and the stopping reason.

    Raises
    ------
    ImpossibleProtection
        If a primary has no witness among all cells that may be suppressed.
    SolverFailed
        If a primary with a sliding level has no witness for the division of the level that was tried, or if
        the deadline passes.
    """
    problem = separation.problem
    witnesses, pattern = (
        Witnesses(problem, separation.knowledge, cheapest=False),
        Pattern(problem.must.copy()),
    )
    open_witnesses(witnesses, pattern, problem.costs, deadline, thorough=-1)
    secondary = np.flatnonzero(pattern.suppressed & ~problem.must)
    witnesses.trim(pattern, secondary, deadline, witnesses.searches + _SEARCHES)
    chosen = pattern.suppressed
    bound, cost = lower_bound(separation), float(problem.costs[chosen].sum())
    return chosen, bound, "proof" if cost <= bound * (1 + PROVED) else "time" if deadline.passed else "work"


def open_witnesses(
    witnesses: Witnesses,
    pattern: Pattern,
    costs: np.ndarray,
    deadline: Deadline | None = None,
    *,
    thorough: int = 1,
) -> None:
    """For one primary cell after the other, suppress the additional cells of its cheapest witness.

    Parameters
    ----------
    costs : (cells,) prices of the cells
    deadline : Deadline, optional
        Time limit. The pattern does not protect all primaries before the last primary has a witness.
    thorough : -1, 1 or 2
        How far from a primary to search among suppressed cells before further cells are suppressed. 2 if the
        pattern already protects most primaries, -1 for unit witnesses only.

    Raises
    ------
    ImpossibleProtection
        If a primary has no witness among all cells that may be suppressed.
    SolverFailed
        If a primary with a sliding level has no witness for the division of the level that was tried, or if
        the deadline passes.

    References
    ----------
    Kelly, Golden, Assad 1992, Cell suppression: disclosure protection for sensitive tabular data, Networks
    22(4): one program for each primary, in which cells already suppressed are cheap.
    """
    problem = witnesses.problem
    costs = np.where(problem.keep, np.inf, costs)
    primaries, waiting = np.flatnonzero(problem.primary), problem.primary.copy()
    for number, primary in enumerate(by_level(witnesses, primaries)):
        if deadline is not None and deadline.passed:
            raise SolverFailed(
                f"time_limit: expected a pattern that protects all {len(primaries)} primary cells, found "
                f"only {number} protected when the time ended; allow more time, or split the table"
            )
        found, failed = witnesses.of(primary, pattern, thorough=thorough)
        by_program = thorough >= 0 or bool(failed)
        if failed:
            found = cheapest_witness(witnesses, pattern, costs, primary)
        pattern.put(primary, found)
        waiting[primary] = False
        if by_program:
            witnesses.share(pattern, found[OUTSIDER], waiting)


def cheapest_witness(
    witnesses: Witnesses, pattern: Pattern, costs: np.ndarray, primary: int
) -> dict[int, tuple[Witness, ...]]:
    """Suppress the additional cells of the cheapest witnesses of a primary cell, and return its witnesses.

    Parameters
    ----------
    costs : (cells,) prices of the cells, infinite if a cell is published

    Raises
    ------
    ImpossibleProtection, SolverFailed
        See `open_witnesses`.
    """
    found, failed = witnesses.of(primary, pattern, thorough=2, costs=costs)
    if failed:
        raise impossible(primary) if _one_split(witnesses, primary) else _no_other_split(primary)
    return found


def open_near(witnesses: Witnesses, pattern: Pattern, costs: np.ndarray, primaries: Sequence[int]) -> bool:
    """Suppress the cheapest additional cells near some primary cells; return whether all of them then have
    witnesses.

    Parameters
    ----------
    costs : (cells,) prices of the cells, infinite if a cell is published
    """
    for primary in primaries:
        found, failed = witnesses.of(primary, pattern, thorough=0)
        if failed:
            found, failed = witnesses.of(primary, pattern, thorough=0, costs=costs)
        if failed:
            return False
        pattern.put(primary, found)
    return True


def by_level(witnesses: Witnesses, primaries: np.ndarray) -> list[int]:
    """Return primary cells in descending order of their levels, because witnesses with large deviations
    protect many other primaries.
    """
    order: list[int] = primaries[np.argsort(-witnesses.level[primaries], kind="stable")].tolist()
    return order


def _one_split(witnesses: Witnesses, primary: int) -> bool:
    """Return whether no other split of a primary cell's sliding level can protect it. This holds without a
    sliding level, and also if the outsider's bounds are symmetric, because equal halves are then easiest.
    """
    problem = witnesses.problem
    symmetric = np.array_equal(problem.values - problem.lower_bound, problem.upper_bound - problem.values)
    return not problem.sliding_level[primary] or (symmetric and not witnesses.knowledge.count)


def _no_other_split(cell: int) -> SolverFailed:
    return SolverFailed(
        f"cell {cell} has a sliding level; in very large tables only one split of it into a decrease and an "
        "increase is tried, and no pattern was found for this split. Replace sliding levels by lower and "
        "upper levels, or split the table"
    )


def lower_bound(separation: Separation) -> float:
    """Return the lower bound that the cuts of single relations prove, from a dual solution computed cut by
    cut.

    Each cut uses the part of the costs of its cells that earlier cuts have not used.
    """
    problem = separation.problem
    left = np.where(problem.keep, 0.0, problem.costs)
    bound = float(problem.costs[problem.must].sum())
    for cut in separation.line_cuts():
        price = float((left[cut.cells] / cut.weights).min())
        left[cut.cells] -= price * cut.weights
        bound += price * cut.least
    return bound
