"""Ours: anneal on stand-ins of the linear program, then improve under its duals, then flip by it.

Where constraints hold enough sensitive cells, and not too many, beliefs are propagated on the sum of
constraint residuals, and what they settle on is annealed, cold, on the largest class sum of a two-way table
or on the quadratic surrogate. Elsewhere directions are annealed from random starts on constraint residuals
(their sum, and the largest class sum) and on the surrogate, in turn and then on whichever led to the cheaper
table. Each result costs one linear program. Where margins are sensitive themselves, directions on margins
that are summed again come first, and are the only starts where constraints are very short. The incumbent is
then annealed under the bundle of duals met so far (`dual_cuts`). At last cells are flipped one and two at a
time, in the order of the gain that the duals promise; the promise bounds the gain, so flips without one are
not tried. Where constraints are many and short, the programs of blocks of constraints flip them; where they
are very short, integer programs of blocks at last turn all their directions at once (`block_descent`). Where
there are few constraints, integer programs turn half of the cells at once (`neighbourhoods`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.annealing.annealing import StandIn
from microguard.sdc.cta.annealing.belief_propagation import BeliefPropagation
from microguard.sdc.cta.annealing.block_descent import BlockDescent
from microguard.sdc.cta.annealing.constraint_residuals import ResidualSum
from microguard.sdc.cta.annealing.dual_cuts import CutParams, anneal_under_cuts
from microguard.sdc.cta.annealing.dual_flips import flip_by_duals
from microguard.sdc.cta.annealing.internal_cells import InternalCellSearch
from microguard.sdc.cta.annealing.neighbourhoods import search_neighbourhoods
from microguard.sdc.cta.annealing.residuals import LineClasses
from microguard.sdc.cta.annealing.surrogate import MAX_CONSTRAINTS, Surrogate
from microguard.sdc.cta.program.directions import random_directions
from microguard.sdc.cta.program.fixed_directions import Evaluation
from microguard.sdc.cta.program.search import Search

#: Sensitive cells up to which each stand-in gets two starts before the best one gets the rest (one start
#: beyond): the largest class sum wins on two-way tables, the surrogate on small and the sum on large others.
TWO_TRIALS_SIZE = 1000
#: Starts that one on the largest class sum of a two-way table stands for, where it is the excess, and how
#: many times their sweeps it gets: at 25x25 some 3 seconds, of which the best of a few is better than one of
#: 11 or many of 0.3.
LONG_STARTS, LONG_SWEEPS = 10, 30
#: Sweeps of a run that refines what beliefs have settled on: four times as many gain no more.
REFINING_SWEEPS = 300
#: Constraints up to which it is on the surrogate: at 36x36x36, with 4,107, it doubles the time of the search
#: and gains 0.5 % of the excess, at 20x20x20 3 % for a fifth.
REFINING_CONSTRAINTS = 2500
#: Runs of an annealing on margins that are summed again, the cheapest, whose linear program is solved.
ASKED_RUNS = 2


@dataclass(frozen=True)
class LocalSearchParams:
    """Work of the phases.

    Attributes
    ----------
    starts : random starts
    sweeps, sum_sweeps : of each, and where it is on sums of residuals
    belief_rounds : of each, where starts are beliefs
    margin_moves : of the annealing on margins that are summed again, in place of starts where there are such
    rounds, cut_sweeps : rounds under cuts and their sweeps; without rounds only the sums are annealed
    cut_work, flip_work : work of the programs of these rounds, and of the final flips
    blocks : whether these are flips by blocks of constraints
    turn_work : work of the integer programs of blocks after them
    neighbourhoods : integer programs after them, each over the directions of some cells
    """

    starts: int
    sweeps: int
    sum_sweeps: int
    rounds: int
    cut_sweeps: int
    cut_work: float
    flip_work: float
    blocks: bool = False
    turn_work: float = 0.0
    neighbourhoods: int = 0
    belief_rounds: int = 0
    margin_moves: float = 0.0


def local_search(search: Search, params: LocalSearchParams, seed: int) -> int:
    """Run the phases; the search keeps the best. The branch-and-bound nodes it took.

    Raises
    ------
    TimeUp
    """
    problem = search.problem
    rng = np.random.default_rng(seed)
    margins = None if problem.summation is None else InternalCellSearch(problem)
    if margins is not None and not margins.only_internal:
        # constraint sums take a sensitive margin for a cell like any other, though its cells move it
        _start_by_margins(search, params, margins, rng)
    most_constraints = (
        MAX_CONSTRAINTS if params.rounds else REFINING_CONSTRAINTS if params.belief_rounds else 0
    )
    surrogate = Surrogate.of(problem) if problem.constraints.shape[0] <= most_constraints else None
    if not params.margin_moves or search.best is None or not search.best.feasible:
        start = _start_by_beliefs if params.belief_rounds else _start_at_random
        start(search, params, surrogate, rng)
    if surrogate is not None and params.rounds:
        anneal_under_cuts(
            search, surrogate, CutParams(params.rounds, params.cut_sweeps, params.cut_work), seed
        )
    if params.blocks and problem.table.quality is None:
        _flip_by_blocks(search, params.flip_work, seed)
    else:
        flip_by_duals(search, params.flip_work)
    if params.turn_work and search.best is not None and search.best.feasible:
        _turn_by_blocks(search, search.best, params.turn_work, seed)
    return search_neighbourhoods(search, params.neighbourhoods, seed)


def _start_by_margins(
    search: Search, params: LocalSearchParams, margins: InternalCellSearch, rng: np.random.Generator
) -> None:
    if params.margin_moves:
        runs = margins.anneal(params.margin_moves, int(rng.integers(2**31)), search.deadline)
        for number, run in enumerate(sorted(runs, key=lambda run: run.cost)):
            if number >= ASKED_RUNS and search.best is not None and search.best.feasible:
                break
            search.evaluate(run.directions, ignore_deadline=search.best is None)
    else:
        start = random_directions(search.problem, rng)
        chosen = margins.best_descent(start, params.sum_sweeps, int(rng.integers(2**31)), search.deadline)
        search.evaluate(chosen, ignore_deadline=True)
    search.count_moves(margins.moves)


def _start_by_beliefs(
    search: Search, params: LocalSearchParams, surrogate: Surrogate | None, rng: np.random.Generator
) -> None:
    problem = search.problem
    beliefs = BeliefPropagation.for_problem(problem)
    refining = LineClasses.of(problem) or surrogate
    for _ in range(params.starts):
        if search.best is not None:
            search.check_time()
        seed = int(rng.integers(2**31))
        chosen = beliefs.run(params.belief_rounds, seed, search.deadline)
        search.count_moves(params.belief_rounds * problem.size)
        if refining is not None:
            chosen = refining.refine(chosen, REFINING_SWEEPS, seed, search.deadline)
            search.count_moves(REFINING_SWEEPS * problem.size)
        search.evaluate(chosen, ignore_deadline=search.best is None)


def _start_at_random(
    search: Search, params: LocalSearchParams, surrogate: Surrogate | None, rng: np.random.Generator
) -> None:
    problem = search.problem
    sums, classes = ResidualSum.of(problem), LineClasses.of(problem)
    models: list[StandIn] = [sums]
    if surrogate is not None:
        models.append(surrogate)
    if classes is not None and params.rounds:
        models.append(classes)
    trials = len(models) * (2 if problem.size <= TWO_TRIALS_SIZE else 1)
    cheapest = [np.inf] * len(models)
    number, left = 0, params.starts
    while left > 0:
        if search.best is not None:  # the first start is asked for even when the clock has run out
            search.check_time()
        turn = number % len(models) if number < trials else int(np.argmin(cheapest))
        start = random_directions(problem, rng)
        sweeps = params.sum_sweeps if models[turn] is sums else params.sweeps
        long = models[turn] is classes
        sweeps *= LONG_SWEEPS if long else 1
        chosen = models[turn].anneal(start, sweeps, int(rng.integers(2**31)), search.deadline)
        search.count_moves(sweeps * problem.size)
        cheapest[turn] = min(
            cheapest[turn], search.evaluate(chosen, ignore_deadline=search.best is None).cost
        )
        number, left = number + 1, left - (LONG_STARTS if long else 1)


def _flip_by_blocks(search: Search, work: float, seed: int) -> None:
    best = search.best
    if best is None:
        return
    descent = BlockDescent(search.problem, best.directions.copy(), best.deviations.copy())
    descent.flip_blocks(work, seed, search.deadline)
    search.count_programs(descent.programs, descent.work)
    search.evaluate(descent.directions)


def _turn_by_blocks(search: Search, best: Evaluation, work: float, seed: int) -> None:
    descent = BlockDescent(search.problem, best.directions.copy(), best.deviations.copy())
    try:
        descent.optimise_blocks(search, work, seed)
    finally:
        search.count_programs(descent.programs, descent.work)
