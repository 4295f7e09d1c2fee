"""Hybrid heuristic: an integer program over groups of sensitive cells (Cox 2005, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from microguard.sdc.cta.cox2005.groups import groups_by_size, swapped
from microguard.sdc.cta.program.model import Model, constraint_cut_model
from microguard.sdc.cta.program.search import Search
from microguard.sdc.cta.program.work import step_limit
from microguard.sdc.solver import Limits, Program, solve
from scipy import sparse


@dataclass(frozen=True)
class HybridParams:
    """Parameters of the hybrid heuristic: numbers of groups in the order tried, program limits, and whether
    cells are swapped.

    A program ends after `nodes`, or after `minutes` of `step_limit`, which counts work.

    The paper runs the hybrid for M, M - 1, M - 2, ... groups and keeps the best, with M = 16 in its
    experiments. Here M is not a parameter of the specification. 16 to 9 groups are tried for every table
    (only 8 with effort fast), because a program with so few binaries is solved within the node limit.
    """

    group_counts: Sequence[int] = (16, 15, 14, 13, 12, 11, 10, 9)
    nodes: int = 2000
    minutes: float = 0.3
    swaps: bool = False


def hybrid(search: Search, params: HybridParams) -> int:
    """Solve the program for each number of groups; `search` keeps the best solution. Return the nodes used.

    Raises
    ------
    TimeUp
    """
    problem = search.problem
    model = constraint_cut_model(problem)
    nodes = 0
    for count in params.group_counts:
        groups = groups_by_size(problem, min(count, max(1, problem.size)))
        if params.swaps:
            groups = swapped(problem, groups)
        search.check_time()
        program, membership = grouped(model, groups)
        steps = step_limit(params.minutes, program)
        limits = Limits(nodes=params.nodes, steps=steps, seconds=search.deadline.remaining)
        solution = solve(program, limits)
        nodes += solution.nodes
        if solution.values is not None:
            start = model.binaries.start
            chosen = np.rint(solution.values[start : start + membership.shape[1]])
            search.evaluate((membership @ chosen).astype(np.int8), ignore_deadline=True)
        if problem.size <= count:
            break
    return nodes


def grouped(model: Model, groups: np.ndarray) -> tuple[Program, sparse.csr_array]:
    """Return the program with one binary variable per group, and the (p, groups) membership matrix.

    A cell with only one admissible direction has a separate binary.
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
    grouped_matrix = sparse.hstack([matrix[:, :start], matrix[:, start:stop] @ membership, matrix[:, stop:]])
    lower, upper = np.zeros(count), np.ones(count)
    np.maximum.at(lower, member, program.lower[start:stop])
    np.minimum.at(upper, member, program.upper[start:stop])

    def replaced(array: np.ndarray, middle: np.ndarray) -> np.ndarray:
        return np.concatenate([array[:start], middle, array[stop:]])

    assert program.integer is not None
    return replace(
        program,
        costs=replaced(program.costs, membership.T @ program.costs[start:stop]),
        matrix=grouped_matrix.tocsr(),
        lower=replaced(program.lower, lower),
        upper=replaced(program.upper, upper),
        integer=replaced(program.integer, np.ones(count, dtype=bool)),
    ), membership
