"""Local search over directions: start solutions, flips, and integer programs over subsets of the directions.

Start solutions come from belief propagation, refined on the quadratic model in three or more dimensions. If a
constraint has too many or too few sensitive cells for belief propagation, they come from annealing on the
constraint residuals. If margins are sensitive, a search on the internal cells comes first; if constraints are
very short, it is the only source of start solutions. Each start solution is evaluated by one linear program.

If start solutions come from annealing, the best one is annealed on the duals of all evaluations
(`dual_cuts`). The best solution is improved by flips of one or two cells, predicted by the duals. In large
tables with short constraints flips and linear programs are restricted to blocks of constraints
(`block_descent`). In the last phase, integer programs optimise the directions of blocks if constraints are
very short, or half of the directions if the table is small (`neighbourhoods`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.annealing.belief_propagation import BeliefPropagation
from microguard.sdc.cta.annealing.block_descent import BlockDescent
from microguard.sdc.cta.annealing.constraint_residuals import ResidualSum
from microguard.sdc.cta.annealing.dual_cuts import CutParams, anneal_under_cuts
from microguard.sdc.cta.annealing.dual_flips import flip_by_duals
from microguard.sdc.cta.annealing.internal_cells import InternalCellSearch
from microguard.sdc.cta.annealing.neighbourhoods import search_neighbourhoods
from microguard.sdc.cta.annealing.quadratic_model import QuadraticModel
from microguard.sdc.cta.program.constraint_classes import disjoint_classes
from microguard.sdc.cta.program.directions import random_directions
from microguard.sdc.cta.program.fixed_directions import Evaluation
from microguard.sdc.cta.program.search import Search

#: Number of sweeps of a refinement; four times as many sweeps do not improve the result.
REFINEMENT_SWEEPS = 300
#: Maximum number of constraints for a refinement. At 36x36x36 (4,107 constraints) it doubles the time and
#: removes 0.5 % of the avoidable cost. At 20x20x20 it takes a fifth of the time and removes 3 %.
REFINEMENT_CONSTRAINTS = 2500
#: Maximum number of constraints for annealing on cuts, because the quadratic model has a dense matrix.
CUT_CONSTRAINTS = 6000
#: Number of annealing runs on internal cells, the best ones, for whose directions a linear program computes
#: the values.
EVALUATED_RUNS = 2


@dataclass(frozen=True)
class LocalSearchParams:
    """Work limits of each phase of the local search.

    Attributes
    ----------
    starts : int, number of start solutions
    sweeps : int, of annealing for each start solution
    flip_work : float, of the linear programs of the flips
    belief_rounds : int, for each start solution by belief propagation; 0 for annealing instead
    blocks : bool, whether flips are restricted to blocks of constraints
    internal_moves : float, of the annealing on internal cells, if margins are sensitive
    block_work : float, of the integer programs of blocks
    cuts : CutParams or None, parameters of the annealing on cuts; None if it is skipped
    neighbourhoods : int, number of integer programs over half of the directions
    """

    starts: int
    sweeps: int
    flip_work: float
    belief_rounds: int = 0
    blocks: bool = False
    internal_moves: float = 0.0
    block_work: float = 0.0
    cuts: CutParams | None = None
    neighbourhoods: int = 0


def local_search(search: Search, params: LocalSearchParams, seed: int) -> int:
    """Run all phases of the local search; `search` keeps the best solution. Return the branch-and-bound nodes
    used.

    Raises
    ------
    TimeUp
    """
    problem = search.problem
    rng = np.random.default_rng(seed)
    internal = None if problem.summation is None else InternalCellSearch(problem)
    if internal is not None and not internal.only_internal:
        # residuals ignore that internal cells change sensitive margins
        _start_on_internal_cells(search, params, internal, rng)
    if not params.internal_moves or search.best is None or not search.best.feasible:
        start = _start_by_beliefs if params.belief_rounds else _start_by_annealing
        start(search, params, rng)
    if params.cuts is not None and problem.constraints.shape[0] <= CUT_CONSTRAINTS:
        anneal_under_cuts(search, QuadraticModel.for_problem(problem), params.cuts, seed)
    if params.blocks and problem.table.quality is None:
        _flip_blocks(search, params.flip_work, seed)
    else:
        flip_by_duals(search, params.flip_work)
    if params.block_work and search.best is not None and search.best.feasible:
        _optimise_blocks(search, search.best, params.block_work, seed)
    return search_neighbourhoods(search, params.neighbourhoods, seed)


def _start_on_internal_cells(
    search: Search, params: LocalSearchParams, internal: InternalCellSearch, rng: np.random.Generator
) -> None:
    if params.internal_moves:
        runs = internal.anneal(params.internal_moves, int(rng.integers(2**31)), search.deadline)
        for number, run in enumerate(sorted(runs, key=lambda run: run.cost)):
            if number >= EVALUATED_RUNS and search.best is not None and search.best.feasible:
                break
            search.evaluate(run.directions, ignore_deadline=search.best is None)
    else:
        start = random_directions(search.problem, rng)
        chosen = internal.best_descent(start, params.sweeps, int(rng.integers(2**31)), search.deadline)
        search.evaluate(chosen, ignore_deadline=True)
    search.count_moves(internal.moves)


def _start_by_beliefs(search: Search, params: LocalSearchParams, rng: np.random.Generator) -> None:
    problem = search.problem
    beliefs = BeliefPropagation.for_problem(problem)
    two_way = disjoint_classes(problem).max(initial=-1) <= 1
    refined = not two_way and problem.constraints.shape[0] <= REFINEMENT_CONSTRAINTS
    model = QuadraticModel.for_problem(problem) if refined else None
    for _ in range(params.starts):
        if search.best is not None:
            search.check_time()
        seed = int(rng.integers(2**31))
        chosen = beliefs.run(params.belief_rounds, seed, search.deadline)
        search.count_moves(params.belief_rounds * problem.size)
        if model is not None:
            chosen = model.refine(chosen, REFINEMENT_SWEEPS, seed, search.deadline)
            search.count_moves(REFINEMENT_SWEEPS * problem.size)
        search.evaluate(chosen, ignore_deadline=search.best is None)


def _start_by_annealing(search: Search, params: LocalSearchParams, rng: np.random.Generator) -> None:
    problem = search.problem
    model = ResidualSum.for_problem(problem)
    for _ in range(params.starts):
        if search.best is not None:  # the first start solution is evaluated even after the deadline
            search.check_time()
        start = random_directions(problem, rng)
        chosen = model.anneal(start, params.sweeps, int(rng.integers(2**31)), search.deadline)
        search.count_moves(params.sweeps * problem.size)
        search.evaluate(chosen, ignore_deadline=search.best is None)


def _flip_blocks(search: Search, work: float, seed: int) -> None:
    best = search.best
    if best is None:
        return
    descent = BlockDescent(search.problem, best.directions.copy(), best.deviations.copy())
    descent.flip_blocks(work, seed, search.deadline)
    search.count_programs(descent.programs, descent.work)
    search.evaluate(descent.directions)


def _optimise_blocks(search: Search, best: Evaluation, work: float, seed: int) -> None:
    descent = BlockDescent(search.problem, best.directions.copy(), best.deviations.copy())
    try:
        descent.optimise_blocks(search, work, seed)
    finally:
        search.count_programs(descent.programs, descent.work)
