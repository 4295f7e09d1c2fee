"""Block descent: improve a table block by block, with all other cells fixed.

The linear program of a table with more than about 50,000 cells takes minutes, the linear program of a block
of constraints takes a few hundredths of a second. Block descent restores violated constraints, optimises the
deviations within the block and flips directions by their duals. Blocks overlap and are chosen anew at random
in every pass. If constraints are very short, an integer program optimises all 60 directions of a block of
1600 constraints in a few seconds.

Source: González and Castro 2011, A heuristic block coordinate descent approach for controlled tabular
adjustment. Their blocks are sets of directions; the blocks here are sets of constraints.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from microguard.sdc.cta.annealing.dual_flips import flip_by_duals
from microguard.sdc.cta.program.constraint_graph import ConstraintGraph
from microguard.sdc.cta.program.fixed_directions import VIOLATION_TOLERANCE
from microguard.sdc.cta.program.model import base_model
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.search import COST_TOLERANCE, Search, TimeUp
from microguard.sdc.cta.program.work import work_from_basis, work_from_nothing
from microguard.sdc.errors import SolverFailed
from microguard.sdc.solver import Limits, solve
from microguard.sdc.stop import Deadline
from scipy import sparse

#: Number of constraints of a block: the first if its linear program is solved once, the second if its
#: directions are flipped. Larger blocks give better solutions, smaller blocks cheaper flips.
SOLVED_CONSTRAINTS, FLIPPING_CONSTRAINTS = 3000, 500
#: Factor by which blocks grow while constraints are violated.
WIDENING = 4
#: Core of a block: share of its constraints that are nearest to its first one. No other block of the same
#: pass starts in it.
CORE = 0.4
#: Work of the flips of a block, relative to one solve of its program.
FLIP_PROGRAMS = 15
#: Minimum relative gain of a pass of flips; after a smaller gain no further pass is run.
LEAST_GAIN = 1e-3
#: Integer programs over the directions of a block: number of constraints of the block, maximum share of all
#: constraints, node limit and relative gap.
OPTIMISED_CONSTRAINTS, OPTIMISED_SHARE, NODES, GAP = 1600, 0.75, 30, 1e-4
#: Maximum number of integer programs, for the case that each takes nearly no work.
MOST_OPTIMISED_BLOCKS = 60


@dataclass(frozen=True, eq=False)
class _Block:
    """Cells inside a block, positions of the sensitive ones in ``Problem.sensitive``, and the subproblem."""

    inside: np.ndarray
    sensitive: np.ndarray
    problem: Problem


@dataclass(eq=False)
class BlockDescent:
    """Block descent: the directions and deviations of a table, improved block by block.

    Attributes
    ----------
    problem : Problem
        Without kept statistics, because these couple all blocks.
    directions : (p,) int8 of 0 and 1
    deviations : (cells,) scaled
        Initially they may violate constraints and protection levels.
    programs : int
        Number of programs solved.
    work : float
        Work of these programs, in the units of `sdc.cta.program.work`.
    """

    problem: Problem
    directions: np.ndarray
    deviations: np.ndarray
    programs: int = field(default=0, init=False)
    work: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        problem, cells = self.problem, self.problem.table.cells
        self._graph = ConstraintGraph(problem.constraints)
        self._constraints_of_cell = np.bincount(problem.constraints.indices, minlength=cells)
        self._place_sensitive, self._place_free = np.full((2, cells), -1, dtype=np.int64)
        self._place_sensitive[problem.sensitive] = np.arange(problem.size)
        self._place_free[problem.free] = np.arange(len(problem.free))

    @property
    def cost(self) -> float:
        """Return the scaled objective of the deviations."""
        return self.problem.cost(self.deviations) / self.problem.objective_unit

    def solve_blocks(self, seed: int, deadline: Deadline) -> None:
        """Run one pass of wide blocks, followed by successively wider blocks around violated constraints."""
        rng = np.random.default_rng(seed)
        size = SOLVED_CONSTRAINTS
        starts = np.arange(self.problem.constraints.shape[0])
        while len(starts) and not deadline.passed:
            self._pass(rng.permutation(starts), size, 0, np.inf, deadline)
            if size >= self.problem.constraints.shape[0]:
                return
            starts, size = self._violated_constraints(), size * WIDENING

    def flip_blocks(self, most_work: float, seed: int, deadline: Deadline) -> None:
        """Run passes of flips in small blocks until the work is used up or a pass gains little."""
        rng = np.random.default_rng(seed)
        before, most_work = np.inf, self.work + most_work
        while self.cost < before * (1 - LEAST_GAIN) and self.work < most_work and not deadline.passed:
            before = self.cost
            starts = rng.permutation(self.problem.constraints.shape[0])
            self._pass(starts, FLIPPING_CONSTRAINTS, FLIP_PROGRAMS, most_work, deadline)

    def _violated_constraints(self) -> np.ndarray:
        """Return the constraints that are violated or contain a cell outside its levels or capacities."""
        problem, deviations = self.problem, self.deviations
        lowest, highest = np.zeros((2, len(deviations)))
        lowest[problem.free], highest[problem.free] = -problem.fall, problem.rise
        upwards = self.directions > 0
        lowest[problem.sensitive] = np.where(upwards, problem.up, -problem.down - problem.fall_slack)
        highest[problem.sensitive] = np.where(upwards, problem.up + problem.rise_slack, -problem.down)
        outside = np.maximum(lowest - deviations, deviations - highest) > VIOLATION_TOLERANCE
        violated = abs(problem.constraints @ deviations) > VIOLATION_TOLERANCE
        return np.flatnonzero(violated | (abs(problem.constraints) @ outside > 0))

    def _pass(
        self, starts: np.ndarray, size: int, flip_programs: int, most_work: float, deadline: Deadline
    ) -> None:
        """Improve blocks of `size` constraints until each start constraint was in the core of a block."""
        remaining = np.zeros(self.problem.constraints.shape[0], dtype=bool)
        remaining[starts] = True
        for first in starts:
            if self.work >= most_work or deadline.passed:
                return
            if remaining[first]:
                block = self._graph.nearest(np.array([first]), size)
                remaining[block[: int(CORE * size)]] = False
                with suppress(TimeUp, SolverFailed):  # a block without solution remains unchanged
                    self._improve(np.sort(block), flip_programs, deadline)

    def optimise_blocks(self, whole: Search, most_work: float, seed: int) -> None:
        """Optimise the directions of blocks around random sensitive cells by integer programs.

        All constraints must hold initially. After every gain the linear program of the whole table is solved.

        Parameters
        ----------
        whole : Search
        most_work : float
            In the units of `sdc.cta.program.work`.
        seed : int

        Raises
        ------
        TimeUp
        """
        rng = np.random.default_rng(seed)
        columns = sparse.csc_matrix(self.problem.constraints)
        width = min(OPTIMISED_CONSTRAINTS, int(OPTIMISED_SHARE * self.problem.constraints.shape[0]))
        spent = self.work + whole.work
        for _ in range(MOST_OPTIMISED_BLOCKS):
            if self.work + whole.work - spent >= most_work:
                return
            whole.check_time()
            cell = self.problem.sensitive[rng.integers(self.problem.size)]
            about = columns.indices[columns.indptr[cell] : columns.indptr[cell + 1]]
            block = self._block(np.sort(self._graph.nearest(about, width)))
            if block is not None and block.problem.size > 1 and self._optimise(block, whole.deadline):
                evaluation = whole.evaluate(self.directions)
                self.deviations = evaluation.deviations.copy()

    def _optimise(self, block: _Block, deadline: Deadline) -> bool:
        """Optimise the directions of a block; return whether the cost decreased."""
        part = block.problem
        model = base_model(part)
        start = np.zeros(len(model.program.costs))
        start[model.binaries] = self.directions[block.sensitive]
        limits = Limits(nodes=NODES, seconds=max(deadline.remaining, 0.1), relative_gap=GAP)
        solution = solve(model.program, limits, start=start)
        columns, constraints = len(start), part.constraints.shape[0]
        self.programs += 1
        self.work += work_from_nothing(columns, constraints) + work_from_basis(
            columns, constraints, solution.iterations
        )
        if solution.values is None:
            return False
        costs, inside = self.problem.table.costs, block.inside
        found = model.deviations(solution.values)
        saved = costs[inside] @ (np.abs(self.deviations[inside]) - np.abs(found[inside]))
        if saved * self.problem.unit <= COST_TOLERANCE * self.problem.cost(self.deviations):
            return False
        self.directions[block.sensitive] = model.directions(solution.values)
        return True

    def _improve(self, constraints: np.ndarray, flip_programs: int, deadline: Deadline) -> None:
        block = self._block(constraints)
        if block is None:
            return
        search = Search(block.problem, deadline)
        try:
            evaluation = search.evaluate(self.directions[block.sensitive], similar_follow=True)
            flip_by_duals(search, flip_programs * evaluation.work)
        finally:
            self.programs += search.programs
            self.work += search.work
            if search.best is not None:
                self.directions[block.sensitive] = search.best.directions
                self.deviations[block.inside] = search.best.deviations[block.inside]

    def _block(self, constraints: np.ndarray) -> _Block | None:
        """Build the subproblem of the cells whose constraints are all in the block; None if there are
        none.
        """
        rows = sparse.csr_matrix(self.problem.constraints[constraints])
        met, times = np.unique(rows.indices, return_counts=True)
        inside = met[times == self._constraints_of_cell[met]]
        sensitive, free = self._place_sensitive[inside], self._place_free[inside]
        sensitive, free = sensitive[sensitive >= 0], free[free >= 0]
        if len(sensitive) + len(free) == 0:
            return None
        outside = rows @ self.deviations - rows[:, inside] @ self.deviations[inside]
        return _Block(inside, sensitive, self.problem.subproblem(constraints, sensitive, free, outside))
