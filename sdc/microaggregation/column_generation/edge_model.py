"""The pricing problem for one cluster size as an integer program over edges: model (14).

Gentile et al. (2020), section 4.2: a binary z_e for every edge, the size constraint (11), and the
node-to-node inequality (12) for every ordered pair. By Proposition 4.2 the solutions are the cliques of eta
nodes. Triangle inequalities are implied for binary z only (Corollary 4.3) and may tighten the relaxation. The
model has n (n - 1) / 2 variables and n (n - 1) inequalities of n terms each, so it is for small n.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.errors import SolverFailed
from microguard.sdc.solver import INFINITY, Program, Status, solve
from scipy import sparse


def solve_edge_model(
    distances: np.ndarray, duals: np.ndarray, size: int, threshold: float, *, triangles: bool = False
) -> np.ndarray:
    """Return the cluster with the least reduced cost, (1, size); (0, size) if its cost is not below
    `threshold`.

    Parameters
    ----------
    distances : (n, n) array
        Squared distances c_e.
    duals : (n,) array
        Duals lambda_v of the records.
    size : int
        Cluster size eta of the paper, at least 2.
    threshold : float
        Threshold of the reduced cost, zero up to rounding.
    triangles : bool
        Whether to add the n (n - 1) (n - 2) / 2 triangle inequalities.

    Raises
    ------
    SolverFailed
        If the solver does not find an optimum.
    """
    solution = solve(edge_program(distances, duals, size, triangles=triangles))
    if solution.status is not Status.OPTIMAL or solution.values is None or solution.objective is None:
        raise SolverFailed(
            f"edge model: expected an optimal solution, found status {solution.status.value}. Use pricing "
            "branch_and_bound"
        )
    if solution.objective >= threshold:
        return np.empty((0, size), dtype=np.int32)
    first, second = np.triu_indices(len(duals), 1)
    chosen = solution.values > 0.5
    return np.union1d(first[chosen], second[chosen]).astype(np.int32)[None, :]


def edge_program(distances: np.ndarray, duals: np.ndarray, size: int, *, triangles: bool) -> Program:
    """Build model (14); the variables are the edges i < j in lexicographic order."""
    n = len(duals)
    first, second = np.triu_indices(n, 1)
    edges = len(first)
    incident = sparse.csr_matrix(
        (np.ones(2 * edges), (np.concatenate([first, second]), np.tile(np.arange(edges), 2))),
        shape=(n, edges),
    )
    # (12) for each end i of every edge: the sum of the other edges at i, minus (eta - 2) times the edge.
    identity = sparse.identity(edges, format="csr")
    node_to_node = sparse.vstack([incident[end] - (size - 1) * identity for end in (first, second)])
    blocks = [sparse.csr_matrix(np.ones((1, edges))), node_to_node]
    lower = [np.array([size * (size - 1) / 2]), np.zeros(2 * edges)]
    upper = [lower[0], np.full(2 * edges, INFINITY)]
    if triangles:
        blocks.append(_triangles(n))
        lower.append(np.full(blocks[-1].shape[0], -INFINITY))
        upper.append(np.ones(blocks[-1].shape[0]))
    return Program(
        costs=distances[first, second] / size - (duals[first] + duals[second]) / (size - 1),
        matrix=sparse.vstack(blocks).tocsc(),
        row_lower=np.concatenate(lower),
        row_upper=np.concatenate(upper),
        lower=np.zeros(edges),
        upper=np.ones(edges),
        integer=np.ones(edges, dtype=bool),
    )


def _triangles(n: int) -> sparse.csr_matrix:
    """Build z_ir + z_rj - z_ij <= 1 for each record r of every triple {i, j, r}."""
    number = np.zeros((n, n), dtype=np.int64)
    number[np.triu_indices(n, 1)] = np.arange(n * (n - 1) // 2)
    triples = np.array([(i, j, r) for i in range(n) for j in range(i + 1, n) for r in range(j + 1, n)])
    a = number[triples[:, 0], triples[:, 1]]
    b = number[triples[:, 0], triples[:, 2]]
    c = number[triples[:, 1], triples[:, 2]]
    count = len(triples)
    columns = np.concatenate([a, b, c, a, c, b, b, c, a])
    rows = np.concatenate([np.tile(np.arange(count) + shift * count, 3) for shift in range(3)])
    signs = np.tile(np.repeat([1.0, 1.0, -1.0], count), 3)
    return sparse.csr_matrix((signs, (rows, columns)), shape=(3 * count, n * (n - 1) // 2))
