"""Covering relaxation: minimise the cost of adjustments subject to cuts only, without directions and
constraints.

Constraint cuts, cell cuts and plane cuts are lower bounds on weighted sums of adjustments. If the levels up
and down are equal, the linear relaxation with directions is not stronger: in the relaxed solution halfway
between up and down, no sensitive cell moves and all constraints hold. The covering relaxation is smaller and
is solved in a tenth of the time.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.program.cell_cuts import NUMERICAL_ZERO, CellCuts, CellCutSeparation
from microguard.sdc.cta.program.constraint_cuts import constraint_cuts
from microguard.sdc.cta.program.cost_splitting import CostSplitting
from microguard.sdc.cta.program.plane_cuts import PlaneProgram
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.cta.program.work import work_from_basis
from microguard.sdc.solver import FEASIBILITY_TOLERANCE, INFINITY, Limits, Master, Program, Status
from microguard.sdc.stop import Deadline
from scipy import sparse

#: Stopping rule of cell cuts: number of successive rounds, and the relative gain that all of them miss.
PATIENCE, LEAST_GAIN = 3, 3e-4
#: Number of such rounds after which plane cuts end. It is smaller because plane cuts take more work.
PLANE_PATIENCE, LEAST_PLANE_GAIN = 4, 1e-3
#: Time limit of a linear program after the deadline, because every result needs a bound.
LEAST_SECONDS = 0.1


class Covering:
    """The covering relaxation of a problem, extended by cuts.

    The adjustment of a cell is its absolute deviation; the adjustment of a sensitive cell is its deviation
    beyond its smaller level. Constraint cuts and cell cuts are derived for deviations beyond the level of the
    chosen direction, which are smaller, so that they are valid.

    Attributes
    ----------
    bound : float
        Scaled; computed from the duals, so that it is valid despite the solver's tolerances.
    binding_cells, binding_planes : CellCuts or None
        Binding cell cuts and plane cuts, None if there are none.
    """

    def __init__(self, problem: Problem, deadline: Deadline) -> None:
        cells = problem.table.cells
        self._costs, self._upper = np.zeros(cells), np.zeros(cells)
        self._costs[problem.free] = problem.free_costs
        self._costs[problem.sensitive] = problem.sensitive_costs
        self._upper[problem.free] = np.maximum(problem.rise, problem.fall)
        furthest = np.maximum(problem.up + problem.rise_slack, problem.down + problem.fall_slack)
        self._upper[problem.sensitive] = furthest - problem.cheaper_levels
        self._unavoidable = problem.unavoidable
        cuts = constraint_cuts(problem)
        self._constraint_numbers = cuts.constraints
        self._cuts = [CellCuts(sparse.csr_matrix(abs(problem.constraints[cuts.constraints])), cuts.least)]
        # plane of each cut, -1 for a cut without a plane
        self._plane_of = [np.full(len(cuts.constraints), -1)]
        program = Program(
            costs=self._costs,
            matrix=self._cuts[0].rows,
            row_lower=cuts.least,
            row_upper=np.full(len(cuts.least), INFINITY),
            lower=np.zeros(cells),
            upper=self._upper,
            offset=problem.unavoidable,
        )
        self._master = Master(program, Limits(options={"solver": "simplex"}))
        self._solution = self._master.solve(max(deadline.remaining, LEAST_SECONDS))
        self._solved = self._solution.status is Status.OPTIMAL

    def add_cell_cuts(
        self,
        separation: CellCutSeparation,
        most_work: float,
        deadline: Deadline,
        least_gain: float = LEAST_GAIN,
    ) -> float:
        """Add cell cuts in rounds until the work is used up or gains are small; return the first gain."""
        patience = 1 if least_gain > LEAST_GAIN else PATIENCE
        gains = [np.inf] * patience
        while self._solved and max(gains[-patience:]) > least_gain and separation.work < most_work:
            if deadline.passed or not separation.worthwhile:
                break
            assert self._solution.values is not None
            cuts = separation.separate(self._solution.values, most_work, deadline)
            added = self._add(cuts, np.full(len(cuts.least), -1), deadline)
            if added is None:
                break
            gain, work = added
            separation.work += work
            gains.append(gain)
        return gains[patience] if len(gains) > patience else 0.0

    def add_plane_cuts(self, programs: list[PlaneProgram], most_work: float, deadline: Deadline) -> None:
        """Add plane cuts at successively better splits of the costs until the work is used up or gains are
        small.

        The cuts at the full costs are added last, because a splitting that starts with them is a local
        optimum.
        """
        if not programs or not self._solved:
            return
        in_plane = sparse.vstack(
            [
                sparse.csr_matrix(np.isin(self._constraint_numbers, each.constraints).astype(float))
                for each in programs
            ]
        ).tocsr()
        splitting = CostSplitting(programs, self._costs, self._others(in_plane))
        whole, whole_numbers, work = self._solve_planes(
            programs, splitting, self._costs[splitting.cells], most_work, deadline
        )
        gains = [np.inf] * PLANE_PATIENCE
        split: np.ndarray | None = splitting.equal_split()
        while split is not None and max(gains[-PLANE_PATIENCE:]) > LEAST_PLANE_GAIN:
            if work >= most_work or deadline.passed:
                break
            cuts, numbers, spent = self._solve_planes(programs, splitting, split, most_work - work, deadline)
            added = self._add(cuts, numbers, deadline)
            if added is None:
                return
            gains.append(added[0])
            work += spent + added[1]
            centre = self._split_by_duals(splitting, in_plane)
            split = splitting.next_split(centre, max(deadline.remaining, LEAST_SECONDS))
        self._add(whole, whole_numbers, deadline)

    def _solve_planes(
        self,
        programs: list[PlaneProgram],
        splitting: CostSplitting,
        split: np.ndarray,
        most_work: float,
        deadline: Deadline,
    ) -> tuple[CellCuts, np.ndarray, float]:
        """Return the cuts of all planes at the given costs, the plane of each cut, and the work.

        The solutions of the planes are added to the model of `splitting`.
        """
        rows, least, numbers, work = [], [], [], 0.0
        for number, program in enumerate(programs):
            if work >= most_work or deadline.passed:
                break
            of_plane = split[splitting.of_plane(number)]
            cut, spent = program.cut(of_plane, deadline)
            work += spent
            if cut is not None and cut.adjustments is not None:
                splitting.add_solution(number, cut.adjustments)
            largest_cost = float(np.max(of_plane, initial=0.0))
            if cut is not None and cut.least > NUMERICAL_ZERO * largest_cost:
                where = (np.zeros(len(program.cells), dtype=int), program.cells)
                rows.append(sparse.csr_matrix((of_plane / largest_cost, where), shape=(1, len(self._costs))))
                least.append(cut.least / largest_cost)
                numbers.append(number)
        matrix = sparse.vstack(rows).tocsr() if rows else sparse.csr_matrix((0, len(self._costs)))
        return CellCuts(matrix, np.array(least, dtype=float)), np.array(numbers, dtype=int), work

    def _add(self, cuts: CellCuts, planes: np.ndarray, deadline: Deadline) -> tuple[float, float] | None:
        """Add cuts; return their relative gain and the work, or None if the program was not solved."""
        if len(cuts.least) == 0:
            return 0.0, 0.0
        self._master.add_rows(cuts.least, np.full(len(cuts.least), INFINITY), cuts.rows)
        tighter = self._master.solve(max(deadline.remaining, LEAST_SECONDS))
        if tighter.status is not Status.OPTIMAL or tighter.objective is None:
            return None
        before = self._solution.objective
        assert before is not None
        self._cuts.append(cuts)
        self._plane_of.append(planes)
        self._solution = tighter
        work = work_from_basis(self._master.columns, self._master.rows, tighter.iterations)
        return tighter.objective / max(before, 1e-9) - 1, work

    def _others(self, in_plane: sparse.csr_matrix) -> CellCuts:
        """Return the binding cuts outside of planes: cell cuts, and constraint cuts of other constraints."""
        in_no_plane = np.asarray(in_plane.sum(axis=0)).ravel() == 0
        binding = np.concatenate([in_no_plane, np.ones(len(self._rows.least) - len(in_no_plane), dtype=bool)])
        binding &= self._cut_duals > 0
        return CellCuts(self._rows.rows[binding], self._rows.least[binding])

    def _split_by_duals(self, splitting: CostSplitting, in_plane: sparse.csr_matrix) -> np.ndarray:
        """Split the costs by the duals of the cuts of each plane; the remaining cost is split equally."""
        weights, rows = self._cut_duals, self._rows.rows
        plane_of = np.concatenate(self._plane_of)
        constraints = len(self._constraint_numbers)
        planes_of_constraint = np.maximum(np.asarray(in_plane.sum(axis=0)).ravel(), 1.0)
        shares = np.zeros(len(splitting.cells))
        for number in range(in_plane.shape[0]):
            weight = np.where(plane_of == number, weights, 0.0)
            weight[:constraints] = (
                in_plane[[number]].toarray().ravel() * weights[:constraints] / planes_of_constraint
            )
            of_plane = splitting.of_plane(number)
            shares[of_plane] = (rows.T @ weight)[splitting.cells[of_plane]]
        return splitting.completed(shares, self._costs - rows.T @ weights)

    @property
    def _rows(self) -> CellCuts:
        rows = sparse.csr_matrix(sparse.vstack([each.rows for each in self._cuts]))
        return CellCuts(rows, np.concatenate([each.least for each in self._cuts]))

    @property
    def _cut_duals(self) -> np.ndarray:
        duals = self._solution.row_duals
        assert duals is not None
        return np.maximum(duals, 0.0)

    @property
    def bound(self) -> float:
        """Return the lower bound on the objective, see the class docstring."""
        if not self._solved:
            return self._unavoidable
        cuts, weights = self._rows, self._cut_duals
        reduced = self._costs - cuts.rows.T @ weights
        return self._unavoidable + float(weights @ cuts.least + np.minimum(reduced, 0.0) @ self._upper)

    @property
    def binding_cells(self) -> CellCuts | None:
        """Return whether cell cuts are binding, see the class docstring."""
        beyond_constraints = np.arange(len(self._rows.least)) >= len(self._constraint_numbers)
        return self._binding(beyond_constraints & (np.concatenate(self._plane_of) < 0))

    @property
    def binding_planes(self) -> CellCuts | None:
        """Return whether plane cuts are binding, see the class docstring."""
        return self._binding(np.concatenate(self._plane_of) >= 0)

    def _binding(self, which: np.ndarray) -> CellCuts | None:
        adjustments = self._solution.values
        if adjustments is None:
            return None
        cuts = self._rows
        reached = cuts.rows @ adjustments <= cuts.least * (1 + 10 * FEASIBILITY_TOLERANCE)
        chosen = which & reached
        return CellCuts(cuts.rows[chosen], cuts.least[chosen]) if chosen.any() else None
