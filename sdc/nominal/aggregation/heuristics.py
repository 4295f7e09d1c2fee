"""Heuristic representatives: greedy, clique heuristic (Cost 2023, section 5.4), simulated annealing."""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import kernel
from microguard.sdc.nominal.aggregation.problem import AggregationProblem

#: Minimum improvement of chi-square. It exceeds the rounding differences of reordered sums, so that the
#: descent terminates.
_IMPROVEMENT = 1e-9

#: Penalty for emptying a cell that must not become empty. It exceeds the chi-square of any choice.
_EMPTYING = 1e9

#: Initial temperature of the annealing as a share of the objective per open cluster.
_START_SHARE = 0.1


def aggregate_greedily(problem: AggregationProblem) -> np.ndarray:
    """Run Algorithm 8: choose in each cluster in turn the representative that increases the objective least;
    return the choices, (c,).

    The thesis prints the criterion without its square. The text ("the lowest increase with respect to the
    objective function") and the printed cell counts imply the square. A choice takes precedence if it adds
    records to a cell that is empty but must not be empty.
    """
    counts = problem.base.copy()
    return _greedy(
        problem.cells,
        problem.start,
        problem.sizes,
        counts,
        problem.tables.original,
        problem.tables.reciprocals,
        problem.kept,
    )


def aggregate_by_cliques(problem: AggregationProblem) -> np.ndarray:
    """Run Algorithm 9: in each cluster in turn, delete the choice whose cheapest clique has the largest
    weight; return the choices, (c,).

    The vertex weights include the base counts: sum over cells of (f^2 + 2 f (base - o)) / o.
    """
    return _clique(
        problem.cells,
        problem.start,
        problem.owner(),
        problem.sizes,
        problem.base,
        problem.tables.original,
        problem.tables.reciprocals,
    )


def improve_choices(problem: AggregationProblem, chosen: np.ndarray, *, moves: int, seed: int) -> np.ndarray:
    """Improve choices by simulated annealing, then by descent to a local optimum; return the choices, (c,).

    A move changes the choice of one cluster. Errors are updated incrementally, so the cost of a move is the
    number of tables that it affects. The result is never worse than `chosen`.
    """
    return _anneal(
        problem.cells,
        problem.start,
        problem.sizes,
        problem.base,
        problem.tables.original,
        problem.tables.reciprocals,
        problem.kept,
        chosen.astype(np.int64),
        moves,
        seed % (1 << 32),
        _START_SHARE * problem.chi2(chosen) / len(chosen),
    )


@kernel
def _increase(
    cells: np.ndarray, size: int, counts: np.ndarray, original: np.ndarray, reciprocals: np.ndarray
) -> float:
    """Return the change of the objective if `size` records are added to these cells."""
    change = 0.0
    for t in range(len(cells)):
        cell = cells[t]
        if cell >= 0:
            change += size * (2 * (counts[cell] - original[cell]) + size) * reciprocals[cell]
    return change


@kernel
def _emptied(cells: np.ndarray, size: int, counts: np.ndarray, kept: np.ndarray) -> int:
    """Return the number of emptied minus filled cells if `size` records are added, among the cells that must
    not become empty.
    """
    number = 0
    for t in range(len(cells)):
        cell = cells[t]
        if cell >= 0 and kept[cell]:
            number += int(counts[cell] + size == 0) - int(counts[cell] == 0)
    return number


@kernel
def _add(cells: np.ndarray, size: int, counts: np.ndarray) -> None:
    for t in range(len(cells)):
        if cells[t] >= 0:
            counts[cells[t]] += size


@kernel
def _greedy(
    cells: np.ndarray,
    start: np.ndarray,
    sizes: np.ndarray,
    counts: np.ndarray,
    original: np.ndarray,
    reciprocals: np.ndarray,
    kept: np.ndarray,
) -> np.ndarray:
    chosen = np.empty(len(sizes), np.int64)
    for cluster in range(len(sizes)):
        best = np.inf
        for choice in range(start[cluster], start[cluster + 1]):
            change = _increase(cells[choice], sizes[cluster], counts, original, reciprocals)
            change += _EMPTYING * _emptied(cells[choice], sizes[cluster], counts, kept)
            if change < best:
                best = change
                chosen[cluster] = choice
        _add(cells[chosen[cluster]], sizes[cluster], counts)
    return chosen


@kernel
def _clique(
    cells: np.ndarray,
    start: np.ndarray,
    owner: np.ndarray,
    sizes: np.ndarray,
    base: np.ndarray,
    original: np.ndarray,
    reciprocals: np.ndarray,
) -> np.ndarray:
    clusters = len(sizes)
    choices = len(owner)
    remaining = np.ones(choices, np.bool_)
    left = start[1:] - start[:-1]
    vertex = np.zeros(choices)
    for i in range(choices):
        vertex[i] = _increase(cells[i], sizes[owner[i]], base, original, reciprocals)
    share = 1.0 / max(clusters - 1, 1)  # a vertex weight is divided equally among the edges of a clique
    while left.max() > 1:
        for cluster in range(clusters):
            if left[cluster] == 1:
                continue
            worst, worst_bound = -1, -np.inf
            for i in range(start[cluster], start[cluster + 1]):
                if not remaining[i]:
                    continue
                bound = vertex[i]
                for other in range(clusters):
                    if other == cluster:
                        continue
                    least = np.inf
                    for j in range(start[other], start[other + 1]):
                        if remaining[j]:
                            weight = share * vertex[j]
                            for t in range(cells.shape[1]):
                                if cells[i, t] >= 0 and cells[i, t] == cells[j, t]:
                                    weight += 2.0 * sizes[cluster] * sizes[other] * reciprocals[cells[i, t]]
                            least = min(least, weight)
                    bound += least
                if bound > worst_bound:
                    worst, worst_bound = i, bound
            remaining[worst] = False
            left[cluster] -= 1
    chosen = np.empty(clusters, np.int64)
    for i in range(choices):
        if remaining[i]:
            chosen[owner[i]] = i
    return chosen


@kernel
def _anneal(
    cells: np.ndarray,
    start: np.ndarray,
    sizes: np.ndarray,
    base: np.ndarray,
    original: np.ndarray,
    reciprocals: np.ndarray,
    kept: np.ndarray,
    chosen: np.ndarray,
    moves: int,
    seed: int,
    warmth: float,
) -> np.ndarray:
    np.random.seed(seed)
    counts = base.copy()
    now = chosen.copy()
    for cluster in range(len(sizes)):
        _add(cells[now[cluster]], sizes[cluster], counts)
    best = now.copy()
    gain = 0.0  # difference between current and initial objective
    best_gain = 0.0
    stride = 1 + len(sizes) // 500  # best choices are copied less often for large files, to save time
    for move in range(moves):
        cluster = np.random.randint(len(sizes))
        choice = start[cluster] + np.random.randint(start[cluster + 1] - start[cluster])
        if choice == now[cluster]:
            continue
        change = _switch(cells, sizes[cluster], now[cluster], choice, counts, original, reciprocals, kept)
        if change <= -warmth * (1.0 - move / moves) * np.log(1.0 - np.random.random()):
            now[cluster] = choice
            gain += change
            if gain < best_gain - _IMPROVEMENT and move % stride == 0:
                best_gain = gain
                best[:] = now
        else:
            _add(cells[choice], -sizes[cluster], counts)
            _add(cells[now[cluster]], sizes[cluster], counts)
    counts[:] = base
    for cluster in range(len(sizes)):
        _add(cells[best[cluster]], sizes[cluster], counts)
    improved = True
    while improved:
        improved = False
        for cluster in range(len(sizes)):
            for choice in range(start[cluster], start[cluster + 1]):
                change = _switch(
                    cells, sizes[cluster], best[cluster], choice, counts, original, reciprocals, kept
                )
                if change < -_IMPROVEMENT:
                    best[cluster] = choice
                    improved = True
                else:
                    _add(cells[choice], -sizes[cluster], counts)
                    _add(cells[best[cluster]], sizes[cluster], counts)
    return best


@kernel
def _switch(
    cells: np.ndarray,
    size: int,
    old: int,
    new: int,
    counts: np.ndarray,
    original: np.ndarray,
    reciprocals: np.ndarray,
    kept: np.ndarray,
) -> float:
    """Change a cluster's choice from `old` to `new`; return the change of the objective."""
    change = _increase(cells[old], -size, counts, original, reciprocals)
    emptied = _emptied(cells[old], -size, counts, kept)
    _add(cells[old], -size, counts)
    change += _increase(cells[new], size, counts, original, reciprocals)
    emptied += _emptied(cells[new], size, counts, kept)
    _add(cells[new], size, counts)
    return change + _EMPTYING * emptied
