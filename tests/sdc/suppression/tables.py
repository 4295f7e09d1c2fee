"""Tiny tables for cell suppression: attackers and intervals by definition, the optimum by enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
from microguard.sdc.cta.table.relations import Dimension, tabulate
from microguard.sdc.suppression import Contributions, SuppressionProblem
from scipy.optimize import linprog

_HIERARCHY = {"Total": ["a", "b"], "a": ["a1", "a2"], "b": ["b1", "b2"]}
_SHAPES = {
    "2-D": ([3, 2], None),
    "3-D": ([2, 2, 2], None),
    "hierarchical": (["tree", 2], None),
    "linked": ([2, 2, 2], (("x0", "x1"), ("x1", "x2"))),
}
KINDS_OF_TABLES = tuple(_SHAPES)


def tiny_problem(kind: str, seed: int) -> SuppressionProblem:
    """Return a table of units, some in several cells, with zero cells and, every third, negative ones."""
    rng = np.random.default_rng(seed)
    sizes, tables = _SHAPES[kind]
    dimensions = [
        Dimension.from_tree(f"x{n}", _HIERARCHY)
        if size == "tree"
        else Dimension.from_tree(f"x{n}", {"Total": [f"{n}{i}" for i in range(int(size))]})
        for n, size in enumerate(sizes)
    ]
    leaves = [[d.codes[i] for i in d.leaves] for d in dimensions]
    cells = list(product(*leaves))
    records = [cell for cell in cells for _ in range(int(rng.integers(1, 4)))]
    amounts = rng.integers(1, 30, len(records)).astype(float)
    amounts[rng.random(len(records)) < 0.15] = 0.0
    negative = seed % 3 == 2
    if negative:
        amounts[rng.random(len(records)) < 0.3] *= -1
    units = rng.integers(0, max(4, 2 * len(records) // 3), len(records))
    codes = [np.array([record[d] for record in records], dtype=object) for d in range(len(sizes))]
    tabulation = tabulate(dimensions, codes, tables)
    values = tabulation.totals(codes, amounts)
    cell, record = tabulation.pairs(codes)
    able = np.flatnonzero(np.abs(values) >= 2)
    primary = np.zeros(len(values), dtype=bool)
    primary[rng.choice(able, min(len(able), int(rng.integers(1, 4))), replace=False)] = True
    share = rng.choice([0.1, 0.2, 0.5], len(values))
    level = np.where(primary, np.ceil(share * np.abs(values) * 2) / 2, 0.0)
    room = np.maximum(np.abs(values) * rng.choice([0.5, 1.0]), level)
    signed = values < 0 if not negative else np.ones(len(values), dtype=bool)
    one_sided = rng.random() < 0.3
    return SuppressionProblem(
        values,
        tabulation.relations,
        primary,
        lower_level=np.zeros(len(values)) if one_sided else level,
        upper_level=level,
        sliding_level=np.where(primary & (rng.random(len(values)) < 0.3), np.minimum(2.5 * level, room), 0.0),
        lower_bound=np.where(signed, values - room, np.maximum(values - room, 0.0)),
        upper_bound=values + room,
        costs=rng.choice([np.ones(len(values)), np.abs(values) + 1]),
        keep=~primary & (rng.random(len(values)) < 0.05),
        force=np.zeros(len(values), dtype=bool),
        contributions=Contributions(cell, units[record], amounts[record]),
    )


def coalitions(problem: SuppressionProblem, suppressed: np.ndarray) -> dict[str, list[tuple[int, ...]]]:
    """Return the attackers of each kind, by definition."""
    members = contributors(problem)
    hidden = {unit for cell in np.flatnonzero(suppressed) for unit in members[cell]}
    found = {
        "single": {tuple(m) for m in members if len(m) == 1},
        "pair": {tuple(sorted(m)) for m in members if len(m) == 2},
        "unit": {(unit,) for m in members for unit in m},
    }
    return {"outsider": [()]} | {
        kind: sorted(units for units in attackers if hidden & set(units)) for kind, attackers in found.items()
    }


def contributors(problem: SuppressionProblem) -> list[dict[int, float]]:
    """Return the amounts of each unit in each cell."""
    found: list[dict[int, float]] = [{} for _ in range(problem.cells)]
    given = problem.contributions
    assert given is not None
    for cell, unit, amount in zip(given.cell, given.unit, given.amount, strict=True):
        found[cell][int(unit)] = found[cell].get(int(unit), 0.0) + float(amount)
    return found


def interval(
    problem: SuppressionProblem, suppressed: np.ndarray, cell: int, units: tuple[int, ...]
) -> tuple[float, float] | None:
    """Return the decrease and increase of a cell that units consider possible.

    Return None if the units know the cell because no other unit contributes to it.
    """
    lower, upper = problem.lower_bound.copy(), problem.upper_bound.copy()
    lower[~suppressed] = upper[~suppressed] = problem.values[~suppressed]
    for place, members in enumerate(contributors(problem)):
        if not suppressed[place] or not set(units) & set(members):
            continue
        if set(members) <= set(units):
            if place == cell:
                return None
            lower[place] = upper[place] = problem.values[place]
        elif problem.lower_bound[place] >= 0:
            own = sum(members.get(unit, 0.0) for unit in units)
            lower[place] = max(lower[place], min(own, problem.values[place]))
    ends = []
    costs = np.zeros(problem.cells)
    for side in (-1, 1):
        costs[cell] = -side
        found = linprog(
            costs,
            A_eq=problem.relations.toarray(),
            b_eq=problem.relations @ problem.values,
            bounds=np.stack([lower, upper], axis=1),
        )
        assert found.status == 0
        ends.append(side * (found.x[cell] - problem.values[cell]))
    return ends[0], ends[1]


def too_narrow(
    problem: SuppressionProblem, suppressed: np.ndarray, cell: int, units: tuple[int, ...]
) -> bool:
    """Return whether units know more about a cell than its levels and the state before publication allow."""
    found = interval(problem, suppressed, cell, units)
    if found is None:
        return False
    down, up = found
    lower, upper, sliding = (
        levels[cell] for levels in (problem.lower_level, problem.upper_level, problem.sliding_level)
    )
    if down >= lower - 1e-5 and up >= upper - 1e-5 and down + up >= sliding - 1e-5:
        return False
    if units:
        before = interval(problem, np.ones(problem.cells, dtype=bool), cell, units)
        assert before is not None
        lower, upper, sliding = min(lower, before[0]), min(upper, before[1]), min(sliding, sum(before))
    return bool(down < lower - 1e-5 or up < upper - 1e-5 or down + up < sliding - 1e-5)


def protects(problem: SuppressionProblem, suppressed: np.ndarray, kinds: tuple[str, ...]) -> bool:
    """Return whether the interval of every attacker for every primary cell contains the levels."""
    for kind, attackers in coalitions(problem, suppressed).items():
        for units in attackers if kind in kinds else ():
            for cell in np.flatnonzero(problem.primary):
                if too_narrow(problem, suppressed, int(cell), units):
                    return False
    return True


def cheaper(problem: SuppressionProblem, cost: float, kinds: tuple[str, ...]) -> np.ndarray | None:
    """Return a protecting pattern of lower cost by enumeration, or None.

    Patterns with a secondary cell alone in a constraint are omitted: they protect equally without this cell.
    """
    must, costs = problem.must, problem.costs
    patterns, totals = must[None, :], np.array([costs[must].sum()])
    for cell in np.flatnonzero(~must & ~problem.keep):
        able = totals + costs[cell] < cost - 1e-6
        more = patterns[able]
        more[:, cell] = True
        patterns, totals = np.concatenate([patterns, more]), np.append(totals, totals[able] + costs[cell])
    wide = problem.upper_bound > problem.lower_bound
    members = abs(problem.relations).T.astype(np.int16).toarray()
    for part in np.array_split(patterns, 1 + len(patterns) // 100_000):
        counts = (part & wide).astype(np.int16) @ members
        for pattern in part[(counts != 1).all(axis=1)]:
            if protects(problem, pattern, kinds):
                return pattern
    return None
