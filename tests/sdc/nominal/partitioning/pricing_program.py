"""Price exactly with the integer program of the thesis, for comparison with branch and bound."""

from __future__ import annotations

import numpy as np
from microguard.sdc.nominal.partitioning.problem import NONE, PartitionProblem
from microguard.sdc.solver import INFINITY, Limits, Program, Status, solve
from scipy import sparse


def solve_pricing_program(
    problem: PartitionProblem, available: np.ndarray, prices: np.ndarray, limits: Limits | None = None
) -> np.ndarray | None:
    """Solve the integer program (4.3.7)-(4.3.11), or (4.4.7)-(4.4.11).

    Returns
    -------
    (2k - 1,) padded column of minimum reduced cost, or None if a limit ended the solver.
    """
    members = np.repeat(np.arange(len(available)), np.minimum(available, problem.largest))
    count = len(members)
    first, second = np.triu_indices(count, 1)
    weights = problem.distances[members[first], members[second]].astype(float)
    positive = weights > 0  # an edge of weight zero needs no variable
    first, second, weights = first[positive], second[positive], weights[positive]
    edges = len(weights)
    row = np.arange(edges)
    linking = sparse.coo_matrix(  # (4.3.8): v_i + v_l - z_il <= 1
        (
            np.concatenate([np.ones(2 * edges), -np.ones(edges)]),
            (np.concatenate([row, row, row]), np.concatenate([first, second, count + row])),
        ),
        shape=(edges, count + edges),
    )
    size = sparse.coo_matrix(  # (4.3.9)
        (np.ones(count), (np.zeros(count, dtype=int), np.arange(count))), shape=(1, count + edges)
    )
    answer = solve(
        Program(
            costs=np.concatenate([-np.asarray(prices, float)[members], weights]),
            matrix=sparse.vstack([linking, size]),
            row_lower=np.concatenate([np.full(edges, -INFINITY), [problem.k]]),
            row_upper=np.concatenate([np.ones(edges), [problem.largest]]),
            lower=np.zeros(count + edges),
            upper=np.ones(count + edges),
            integer=np.arange(count + edges) < count,
        ),
        limits,
    )
    if answer.status is not Status.OPTIMAL or answer.values is None:
        return None
    chosen = members[answer.values[:count] > 0.5]
    column = np.full(problem.largest, NONE, dtype=np.int64)
    column[: len(chosen)] = np.sort(chosen)
    return column
