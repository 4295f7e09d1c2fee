"""Descent by blocks: the linear program of a block of lines with all else held, one block after the other.

The program of a whole table takes minutes from some 50,000 cells on. Those of blocks take hundredths of a
second; they close lines that are open, spread adjustments as the whole program would within the block, and
flip directions by their duals. Blocks overlap, and are drawn anew for every pass. Where lines are very short,
an integer program turns the 60 directions of a block of 1600 lines at once, in a few seconds.

Source: González and Castro 2011, A heuristic block coordinate descent approach for controlled tabular
adjustment; their blocks are of directions, these of lines.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from microguard.sdc.cta.annealing.dual_flips import flip_by_duals
from microguard.sdc.cta.program.directed import SLACK_TOLERANCE
from microguard.sdc.cta.program.model import base_model
from microguard.sdc.cta.program.near_lines import NearLines
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.search import COST_TOLERANCE, Search, TimeUp
from microguard.sdc.cta.program.work import work_from_basis, work_from_nothing
from microguard.sdc.errors import SolverFailed
from microguard.sdc.solver import Limits, solve
from microguard.sdc.stop import Deadline
from scipy import sparse

#: Lines of a block that spreads adjustments, and of one that flips directions too: wide ones spread better,
#: small ones flip more cheaply.
SPREADING_LINES, FLIPPING_LINES = 3000, 500
#: How many times wider blocks become where lines are not yet as they must be.
WIDENING = 4
#: Share of a block's lines, the nearest to its first, that no other block of the pass begins at.
CORE = 0.4
#: Work of the flips of a block, in programs of its size from nothing.
FLIP_PROGRAMS = 15
#: Share of the cost that a pass of flips must gain for another one to follow.
LEAST_GAIN = 1e-3
#: Lines of a block whose directions an integer program turns, their share of a smaller table, its nodes and
#: the relative gap at which it ends.
TURNING_LINES, TURNING_SHARE, NODES, GAP = 1600, 0.75, 30, 1e-4
#: Integer programs of blocks at most, where each is next to nothing.
MOST_TURNS = 60


@dataclass(frozen=True, eq=False)
class _Block:
    """Cells inside a block, the positions of the sensitive ones in ``Problem.sensitive``, and its problem."""

    inside: np.ndarray
    sensitive: np.ndarray
    part: Problem


@dataclass(eq=False)
class BlockDescent:
    """Directions and deviations of a table, improved block by block.

    Attributes
    ----------
    problem : Problem
        Without kept statistics, which would tie all blocks together.
    directions : (p,) int8 of 0 and 1
    deviations : (cells,) scaled
        Lines may be open, and sensitive cells off their levels, when it begins.
    programs : int
        Linear programs asked.
    work : float
        Of these, as `sdc.cta.program.work` counts it.
    """

    problem: Problem
    directions: np.ndarray
    deviations: np.ndarray
    programs: int = field(default=0, init=False)
    work: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        problem, cells = self.problem, self.problem.table.cells
        self._near = NearLines(problem.lines)
        self._lines_of = np.bincount(problem.lines.indices, minlength=cells)
        self._place_sensitive, self._place_free = np.full((2, cells), -1, dtype=np.int64)
        self._place_sensitive[problem.sensitive] = np.arange(problem.size)
        self._place_free[problem.free] = np.arange(len(problem.free))

    @property
    def cost(self) -> float:
        """Scaled objective of the deviations."""
        return self.problem.cost(self.deviations) / self.problem.objective_unit

    def spread(self, seed: int, deadline: Deadline) -> None:
        """One pass of wide blocks, and ever wider ones about the lines that are not as they must be."""
        rng = np.random.default_rng(seed)
        lines = SPREADING_LINES
        starts = np.arange(self.problem.lines.shape[0])
        while len(starts) and not deadline.passed:
            self._pass(rng.permutation(starts), lines, 0, np.inf, deadline)
            if lines >= self.problem.lines.shape[0]:
                return
            starts, lines = self._faulty_lines(), lines * WIDENING

    def flip(self, most_work: float, seed: int, deadline: Deadline) -> None:
        """Passes of small blocks, with flips, until the work is done or a pass gains little."""
        rng = np.random.default_rng(seed)
        before, most_work = np.inf, self.work + most_work
        while self.cost < before * (1 - LEAST_GAIN) and self.work < most_work and not deadline.passed:
            before = self.cost
            starts = rng.permutation(self.problem.lines.shape[0])
            self._pass(starts, FLIPPING_LINES, FLIP_PROGRAMS, most_work, deadline)

    def _faulty_lines(self) -> np.ndarray:
        """Lines that are open, or hold a cell off its level or beyond its capacities."""
        problem, deviations = self.problem, self.deviations
        lowest, highest = np.zeros((2, len(deviations)))
        lowest[problem.free], highest[problem.free] = -problem.fall, problem.rise
        upwards = self.directions > 0
        lowest[problem.sensitive] = np.where(upwards, problem.up, -problem.down - problem.fall_room)
        highest[problem.sensitive] = np.where(upwards, problem.up + problem.rise_room, -problem.down)
        outside = np.maximum(lowest - deviations, deviations - highest) > SLACK_TOLERANCE
        is_open = abs(problem.lines @ deviations) > SLACK_TOLERANCE
        return np.flatnonzero(is_open | (abs(problem.lines) @ outside > 0))

    def _pass(
        self, starts: np.ndarray, lines: int, flip_programs: int, most_work: float, deadline: Deadline
    ) -> None:
        """Blocks of so many lines, until each of the starts was near the first line of one."""
        remaining = np.zeros(self.problem.lines.shape[0], dtype=bool)
        remaining[starts] = True
        for first in starts:
            if self.work >= most_work or deadline.passed:
                return
            if remaining[first]:
                block = self._near.around(np.array([first]), lines)
                remaining[block[: int(CORE * lines)]] = False
                with suppress(TimeUp, SolverFailed):  # the block stays as it is
                    self._improve(np.sort(block), flip_programs, deadline)

    def turn(self, whole: Search, most_work: float, seed: int) -> None:
        """Turn all directions of blocks about random sensitive cells by integer programs of so much work.

        All lines are closed when it begins; the program of the whole table is asked after every gain.

        Raises
        ------
        TimeUp
        """
        rng = np.random.default_rng(seed)
        columns = sparse.csc_matrix(self.problem.lines)
        width = min(TURNING_LINES, int(TURNING_SHARE * self.problem.lines.shape[0]))
        spent = self.work + whole.work
        for _ in range(MOST_TURNS):
            if self.work + whole.work - spent >= most_work:
                return
            whole.check_time()
            cell = self.problem.sensitive[rng.integers(self.problem.size)]
            about = columns.indices[columns.indptr[cell] : columns.indptr[cell + 1]]
            block = self._block(np.sort(self._near.around(about, width)))
            if block is not None and block.part.size > 1 and self._turn(block, whole.deadline):
                answer = whole.ask(self.directions)
                self.deviations = answer.deviations.copy()

    def _turn(self, block: _Block, deadline: Deadline) -> bool:
        """Whether it gained."""
        part = block.part
        model = base_model(part)
        start = np.zeros(len(model.program.costs))
        start[model.binaries] = self.directions[block.sensitive]
        limits = Limits(nodes=NODES, seconds=max(deadline.remaining, 0.1), relative_gap=GAP)
        solution = solve(model.program, limits, start=start)
        columns, lines = len(start), part.lines.shape[0]
        self.programs += 1
        self.work += work_from_nothing(columns, lines) + work_from_basis(columns, lines, solution.iterations)
        if solution.values is None:
            return False
        costs, inside = self.problem.table.costs, block.inside
        found = model.deviations(solution.values)
        saved = costs[inside] @ (np.abs(self.deviations[inside]) - np.abs(found[inside]))
        if saved * self.problem.unit <= COST_TOLERANCE * self.problem.cost(self.deviations):
            return False
        self.directions[block.sensitive] = model.directions(solution.values)
        return True

    def _improve(self, lines: np.ndarray, flip_programs: int, deadline: Deadline) -> None:
        block = self._block(lines)
        if block is None:
            return
        search = Search(block.part, deadline)
        try:
            answer = search.ask(self.directions[block.sensitive], one_of_many=True)
            flip_by_duals(search, flip_programs * answer.work)
        finally:
            self.programs += search.programs
            self.work += search.work
            if search.best is not None:
                self.directions[block.sensitive] = search.best.directions
                self.deviations[block.inside] = search.best.deviations[block.inside]

    def _block(self, lines: np.ndarray) -> _Block | None:
        """The cells all of whose lines are among these, and what the others hold; None where there are
        none."""
        rows = sparse.csr_matrix(self.problem.lines[lines])
        met, times = np.unique(rows.indices, return_counts=True)
        inside = met[times == self._lines_of[met]]
        sensitive, free = self._place_sensitive[inside], self._place_free[inside]
        sensitive, free = sensitive[sensitive >= 0], free[free >= 0]
        if len(sensitive) + len(free) == 0:
            return None
        held = rows @ self.deviations - rows[:, inside] @ self.deviations[inside]
        return _Block(inside, sensitive, self.problem.part(lines, sensitive, free, held))
