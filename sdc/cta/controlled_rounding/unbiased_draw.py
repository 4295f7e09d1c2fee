"""Draw an additive rounding from a distribution whose expectation is the true value of every cell.

In three dimensions, or with two hierarchies, a random walk need not end at multiples, and a program that
rounds the remaining cells is biased. If the true values are a convex combination of additive roundings,
however, a draw from these roundings with their weights as probabilities is unbiased. The weights are found by
column generation: a linear program minimises the largest bias of a cell over the current roundings, and the
rounding with the least reduced cost is added to them. If no distribution is unbiased, the one with the least
largest bias remains.

The first roundings are derived from the key, so that different keys draw from different sets of roundings.

Source: Cox 1987 (unbiased controlled rounding as a distribution over roundings); Dantzig, Wolfe 1960 (column
generation).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.table.summation import Summation
from microguard.sdc.solver import INFINITY, Limits, Master, Program, Solution, Status, solve
from scipy import sparse
from scipy.sparse.csgraph import connected_components

#: Maximum bias, in bases, of a distribution that counts as unbiased: the tolerance of the solver.
NO_BIAS = 1e-6
#: Number of keyed roundings at the start, and maximum number of roundings that are added later. At 4x4x3 a
#: draw takes 0.09 s with 8 to 48 initial roundings, 0.12 s with 2 and 0.16 s with 96.
KEYED_ROUNDINGS, MOST_ROUNDINGS = 24, 400
#: Work limits of the integer program of one rounding: nodes, and solver steps (`Limits.steps`) times nonzero
#: entries.
NODES, STEP_ENTRIES = 500, 1e6
#: Distance to a whole number below which a value of the solver counts as one.
WHOLE_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Draw:
    """A drawn rounding, and the distribution from which it was drawn.

    Attributes
    ----------
    raised : (moving cells,) of 0 and 1
        Whether a cell goes to its upper multiple.
    bias : float
        Largest bias of a cell over the draws, in bases.
    programs : int
        Number of linear and integer programs.
    """

    raised: np.ndarray
    bias: float
    programs: int


def walk_ends_whole(summation: Summation) -> bool:
    """Return whether the random walk is certain to end at multiples of the rounding base.

    Every total is a set of internal cells. If the sets split into two laminar families, their matrix is
    totally unimodular (Edmonds 1970), so that every vertex is whole. That is the case in two dimensions, at
    most one of them hierarchical.
    """
    sets = sparse.csr_matrix(summation.matrix)
    common = sparse.coo_matrix(sets @ sets.T)
    sizes = np.diff(sets.indptr)
    crossing = (common.data > 0) & (common.data < np.minimum(sizes[common.row], sizes[common.col]))
    count = sets.shape[0]
    # a two-colouring exists if no component contains a node and its copy in the bipartite double cover
    first, second = common.row[crossing], common.col[crossing]
    cover = sparse.coo_matrix((np.ones(len(first)), (first, second + count)), shape=(2 * count, 2 * count))
    _, labels = connected_components(cover, directed=False)
    return not np.any(labels[:count] == labels[count:])


def draw_rounding(
    relations: sparse.csr_matrix, rests: np.ndarray, shares: np.ndarray, seed: int, number: float
) -> Draw | None:
    """Draw an additive rounding.

    Parameters
    ----------
    relations : sparse (constraints, moving cells)
        The cells are in a canonical order; the order of the constraints has no effect.
    rests : (constraints,)
        Required sum of the raised cells of each constraint.
    shares : (moving cells,)
        Probability with which each cell is to be raised, between 0 and 1.
    seed : int
        Seed of the keyed roundings.
    number : float
        Uniform in [0, 1), independent of the seed; it decides the draw.

    Returns
    -------
    Draw or None
        None if there is no additive rounding, or if the work limit was reached.
    """
    pricing = _Pricing(*_canonical(relations, rests))
    rng = np.random.default_rng(seed)
    found = [pricing.cheapest(rng.random(len(shares)) - shares) for _ in range(KEYED_ROUNDINGS)]
    if any(rounding is None for rounding in found):
        return None
    roundings = [rounding for rounding in found if rounding is not None]
    master = _master(shares, roundings)
    for _ in range(MOST_ROUNDINGS):
        solution = master.solve()
        if solution.status is not Status.OPTIMAL or solution.row_duals is None or solution.values is None:
            return None
        bias = float(solution.values[0])
        if bias > NO_BIAS:
            prices, convex = _prices(solution)
            rounding = pricing.cheapest(prices)
            if rounding is None:
                return None
            if prices @ rounding - convex < -NO_BIAS:
                _add(master, [rounding])
                roundings.append(rounding)
                continue
        weights = np.maximum(solution.values[1:], 0.0)
        drawn = int(np.searchsorted(np.cumsum(weights), number * weights.sum(), side="right"))
        programs = pricing.programs + len(roundings) - KEYED_ROUNDINGS + 1
        return Draw(roundings[min(drawn, len(roundings) - 1)], max(bias, 0.0), programs)
    return None


def _canonical(relations: sparse.csr_matrix, rests: np.ndarray) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Drop empty and repeated constraints and sort the others, so that the draw does not depend on their
    order.
    """
    rows = sparse.csr_matrix(relations)
    rows.sort_indices()
    distinct = set()
    for row in range(rows.shape[0]):
        inside = slice(rows.indptr[row], rows.indptr[row + 1])
        if inside.stop > inside.start:
            entries = rows.data[inside] * np.sign(rows.data[inside.start])
            rest = float(rests[row] * np.sign(rows.data[inside.start]))
            distinct.add((tuple(rows.indices[inside].tolist()), tuple(entries.tolist()), rest))
    ordered = sorted(distinct)
    starts = np.cumsum([0, *(len(cells) for cells, _, _ in ordered)])
    cells = np.array([cell for cells, _, _ in ordered for cell in cells], dtype=np.int64)
    entries = np.array([entry for _, entries, _ in ordered for entry in entries], dtype=float)
    sums = np.array([rest for _, _, rest in ordered], dtype=float)
    return sparse.csr_matrix((entries, cells, starts), shape=(len(ordered), rows.shape[1])), sums


class _Pricing:
    """Pricing problem: the additive rounding with the least price. It is solved by the linear relaxation, or
    by an integer program if the relaxed solution is not whole.

    Parameters
    ----------
    relations : sparse (constraints, moving cells)
    rests : (constraints,)

    Attributes
    ----------
    programs : int
        Number of programs solved.
    """

    def __init__(self, relations: sparse.csr_matrix, rests: np.ndarray) -> None:
        count = relations.shape[1]
        self.programs = 0
        self._program = Program(
            costs=np.zeros(count),
            matrix=relations,
            row_lower=rests,
            row_upper=rests,
            lower=np.zeros(count),
            upper=np.ones(count),
        )
        # primal simplex: only the costs change, so the previous solution remains feasible
        limits = Limits(options={"solver": "simplex", "simplex_strategy": 4, "presolve": "off"})
        self._relaxation = Master(self._program, limits)

    def cheapest(self, prices: np.ndarray) -> np.ndarray | None:
        """Return the rounding with the least price, (moving cells,); None if no rounding exists or none was
        found.
        """
        self._relaxation.change_costs(prices)
        self.programs += 1
        solution = self._relaxation.solve()
        if solution.status is Status.INFEASIBLE:
            return None
        whole = _whole(solution)
        return self._integer(prices) if whole is None else whole

    def _integer(self, prices: np.ndarray) -> np.ndarray | None:
        program = Program(
            costs=prices,
            matrix=self._program.matrix,
            row_lower=self._program.row_lower,
            row_upper=self._program.row_upper,
            lower=self._program.lower,
            upper=self._program.upper,
            integer=np.ones(len(prices), dtype=bool),
        )
        self.programs += 1
        steps = int(STEP_ENTRIES / max(self._program.matrix.nnz, 1))
        solution = solve(program, Limits(nodes=NODES, steps=steps))
        if solution.status is not Status.OPTIMAL or solution.values is None:
            return None
        return np.rint(solution.values)


def _whole(solution: Solution) -> np.ndarray | None:
    if solution.status is not Status.OPTIMAL or solution.values is None:
        return None
    rounded = np.rint(solution.values)
    return rounded if np.all(np.abs(solution.values - rounded) <= WHOLE_TOLERANCE) else None


def _master(shares: np.ndarray, roundings: list[np.ndarray]) -> Master:
    """Return the linear program that chooses the weights of the roundings with the smallest largest bias.

    The first column of the program is the bias, and its first row is the sum of the weights. The other rows
    bound the bias of each cell from above and below.
    """
    count = len(shares)
    bias = np.concatenate([[0.0], -np.ones(count), np.ones(count)])
    program = Program(
        costs=np.ones(1),
        matrix=sparse.csr_matrix(bias[:, None]),
        row_lower=np.concatenate([[1.0], np.full(count, -INFINITY), shares]),
        row_upper=np.concatenate([[1.0], shares, np.full(count, INFINITY)]),
        lower=np.zeros(1),
        upper=np.full(1, INFINITY),
    )
    master = Master(program, Limits(options={"solver": "simplex"}))
    _add(master, roundings)
    return master


def _add(master: Master, roundings: list[np.ndarray]) -> None:
    columns = np.array(roundings).T
    block = sparse.csc_matrix(np.vstack([np.ones(columns.shape[1]), columns, columns]))
    none = np.zeros(columns.shape[1])
    master.add_columns(none, block, none, none + INFINITY)


def _prices(solution: Solution) -> tuple[np.ndarray, float]:
    """Return the price of each cell, and the dual value of the constraint on the sum of weights."""
    duals = solution.row_duals
    assert duals is not None
    count = (len(duals) - 1) // 2
    return -(duals[1 : 1 + count] + duals[1 + count :]), float(duals[0])
