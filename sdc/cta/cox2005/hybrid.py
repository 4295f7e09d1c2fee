"""Hybrid heuristic: an integer program over groups of sensitive cells (Cox 2005, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from microguard.sdc.cta.cox2005.groups import groups_by_size, swapped
from microguard.sdc.cta.program.model import Model, cut_model
from microguard.sdc.cta.program.search import Search
from microguard.sdc.solver import Limits, Program, solve
from scipy import sparse


@dataclass(frozen=True)
class HybridParams:
    """Numbers of groups tried in turn and branch-and-bound nodes for each."""

    group_counts: Sequence[int] = (16, 15, 14, 13, 12, 11, 10, 9)
    nodes: int = 2000
    swaps: bool = False


def hybrid(search: Search, params: HybridParams) -> int:
    """Best directions over M, M-1, ... groups; returns the nodes used.

    Raises
    ------
    TimeUp
    """
    problem = search.problem
    model = cut_model(problem)
    nodes = 0
    for count in params.group_counts:
        groups = groups_by_size(problem, min(count, max(1, problem.size)))
        if params.swaps:
            groups = swapped(problem, groups)
        search.check_time()
        program, membership = grouped(model, groups)
        solution = solve(program, Limits(nodes=params.nodes, seconds=search.deadline.remaining))
        nodes += solution.nodes
        if solution.values is not None:
            start = model.binaries.start
            chosen = np.rint(solution.values[start : start + membership.shape[1]])
            search.ask((membership @ chosen).astype(np.int8), overtime=True)
        if problem.size <= count:
            break
    return nodes


def grouped(model: Model, groups: np.ndarray) -> tuple[Program, sparse.csr_array]:
    """The program with one binary per group, and the (p, groups) membership that expands it.

    Cells with only one admissible direction keep a binary of their own.
    """
    problem, program = model.problem, model.program
    group_of = np.where(problem.forced >= 0, groups.max(initial=0) + 1 + np.arange(problem.size), groups)
    _, member = np.unique(group_of, return_inverse=True)
    count = int(member.max(initial=-1)) + 1
    membership = sparse.csr_array(
        (np.ones(problem.size), (np.arange(problem.size), member)), shape=(problem.size, count)
    )
    start, stop = model.binaries.start, model.binaries.stop
    matrix = sparse.csc_array(program.matrix)
    gathered = sparse.hstack([matrix[:, :start], matrix[:, start:stop] @ membership, matrix[:, stop:]])
    lower, upper = np.zeros(count), np.ones(count)
    np.maximum.at(lower, member, program.lower[start:stop])
    np.minimum.at(upper, member, program.upper[start:stop])

    def spread(array: np.ndarray, middle: np.ndarray) -> np.ndarray:
        return np.concatenate([array[:start], middle, array[stop:]])

    assert program.integer is not None
    return replace(
        program,
        costs=spread(program.costs, membership.T @ program.costs[start:stop]),
        matrix=gathered.tocsr(),
        lower=spread(program.lower, lower),
        upper=spread(program.upper, upper),
        integer=spread(program.integer, np.ones(count, dtype=bool)),
    ), membership
