"""Linear relaxation of the choice of cells, over the cuts found so far."""

from __future__ import annotations

import numpy as np
from microguard.sdc.errors import ImpossibleProtection, SolverFailed
from microguard.sdc.solver import INFINITY, Limits, Master, Program, Status, solve
from microguard.sdc.stop import Deadline
from microguard.sdc.suppression.cuts import VIOLATED, Cut, Pool
from microguard.sdc.suppression.local_cuts import LocalCuts
from microguard.sdc.suppression.problem import SuppressionProblem
from microguard.sdc.suppression.separation import Separation
from scipy import sparse

#: The lower bound is final if the last rounds together raised it by less than this share.
_PROGRESS, _ROUNDS = 1e-4, 12
#: Maximum number of cuts of one round.
_MOST_CUTS = 150


class Relaxation:
    """Linear program over the cells that may be suppressed; cuts are added as rows.

    Attributes
    ----------
    x : (cells,) optimum of the program
    bound : lower bound on the cost of every pattern
    reduced_costs : (cells,)
    iterations : int
        Simplex iterations of the last integer program.
    pool : Pool
    bridges : Bridges
    """

    def __init__(self, problem: SuppressionProblem, pool: Pool) -> None:
        self._problem = problem
        self.pool = pool
        lower, upper = problem.must.astype(float), (~problem.keep).astype(float)
        free = (lower < upper) & (problem.costs > 0)
        self._unit = float(problem.costs[free].mean()) if free.any() else 1.0
        costs = np.where(lower < upper, problem.costs / self._unit, 0.0)
        matrix, least = pool.matrix()
        self._master = Master(Program(costs, matrix, least, np.full(len(least), INFINITY), lower, upper))
        self._base = float(problem.costs[problem.must].sum())
        self.bridges = Bridges(problem)
        self.x, self.bound, self.reduced_costs = lower, self._base, costs
        self._fixed, self.iterations = False, 0

    def solve(self) -> None:
        """Solve the current linear program."""
        solution = self._master.solve()
        if solution.status is Status.INFEASIBLE:
            raise ImpossibleProtection(
                "no pattern protects every primary cell from every attacker; declare fewer cells as "
                "published, lower the levels, or merge categories"
            )
        if solution.status is not Status.OPTIMAL or solution.values is None or solution.reduced_costs is None:
            raise SolverFailed(
                "choice of cells: expected an optimal solution of the linear program, found status "
                f"{solution.status.value}"
            )
        self.x = np.clip(solution.values, 0.0, 1.0)
        if self._fixed:
            return
        self.bound = max(self.bound, self._base + self._unit * solution.bound)
        self.reduced_costs = self._unit * solution.reduced_costs

    def add(self, cuts: list[Cut]) -> int:
        """Add cuts; return the number of new cuts."""
        new = self.pool.add(cuts)
        if new:
            matrix, least = self.pool.matrix(new)
            self._master.add_rows(least, np.full(len(new), INFINITY), matrix)
        return len(new)

    def integer(
        self,
        limits: Limits,
        start: np.ndarray | None,
        fixed: np.ndarray,
        suppressed: np.ndarray | None = None,
    ) -> tuple[np.ndarray | None, float]:
        """Return the best pattern that satisfies the cuts among those that the solver finds, and a lower
        bound on the cost.

        Parameters
        ----------
        limits : Limits
        start : (cells,) boolean array, optional
            A pattern that satisfies all cuts.
        fixed : (cells,) boolean array
            Cells that no pattern better than the incumbent suppresses.
        suppressed : (cells,) boolean array, optional
            Cells that the pattern must suppress. The bound is then valid for such patterns only.
        """
        problem = self._problem
        must = problem.must if suppressed is None else problem.must | suppressed
        lower, upper = must.astype(float), (~problem.keep & ~fixed).astype(float)
        used = np.flatnonzero(lower < upper)
        matrix, least = self.pool.matrix()
        least = least - matrix @ lower
        matrix = matrix[:, used]
        negative = sparse.csr_matrix(
            (np.minimum(matrix.data, 0.0), matrix.indices, matrix.indptr), matrix.shape
        )
        binding = np.flatnonzero(least > np.asarray(negative.sum(axis=1)).ravel())
        matrix, least = matrix[binding], least[binding]
        program = Program(
            problem.costs[used] / self._unit,
            matrix,
            least,
            np.full(len(least), INFINITY),
            np.zeros(len(used)),
            np.ones(len(used)),
            np.ones(len(used), dtype=bool),
        )
        begin = None if start is None or (start & fixed).any() else start[used].astype(float)
        solution = solve(program, limits, begin)
        self.iterations = solution.iterations
        bound = float(problem.costs[must].sum()) + self._unit * solution.bound
        if solution.values is None:
            return None, bound if solution.status is not Status.INFEASIBLE else float("inf")
        chosen = must.copy()
        chosen[used[solution.values > 0.5]] = True
        return chosen, bound

    def fix(self, cells: np.ndarray) -> None:
        """Fix cells as suppressed in all solves until `release` is called. These solves prove no
        lower bound.
        """
        self._fixed = True
        self._master.change_bounds(cells, np.ones(len(cells)), np.ones(len(cells)))

    def release(self) -> None:
        """Remove the fixing of cells by `fix`."""
        self._fixed = False
        problem = self._problem
        self._master.change_bounds(
            np.arange(problem.cells), problem.must.astype(float), (~problem.keep).astype(float)
        )

    def settle(self, local: LocalCuts, sweeps: float, deadline: Deadline) -> None:
        """Solve and add local cuts until each target was tried a given number of times, or no target has a
        new cut.
        """
        self.solve()
        left = int(np.ceil(sweeps * len(local)))
        quiet = 0
        while left > 0 and quiet < len(local) and not deadline.passed:
            cuts, tried = local.cuts(self.x, _MOST_CUTS, left)
            left -= tried
            quiet = 0 if self.add(cuts) else quiet + tried
            if quiet == 0:
                self.solve()
                while self.add(self.bridges.cuts(self.x)):
                    self.solve()

    def converge(
        self, separation: Separation, deadline: Deadline, *, contributors: bool, rounds: int
    ) -> bool:
        """Solve and add violated cuts until no cut is violated, or the lower bound no longer rises.

        Return whether no cut is violated.
        """
        history = []
        for _ in range(rounds):
            self.solve()
            history.append(self.bound)
            stalled = len(history) > _ROUNDS and history[-1] <= history[-1 - _ROUNDS] * (1 + _PROGRESS)
            if stalled or deadline.passed:
                return False
            new = self.add(self.bridges.cuts(self.x))
            for who in (False, True) if contributors else (False,):
                new = new or self.add(separation.cuts(self.x, contributors=who, most=_MOST_CUTS)[0])
            if not new:
                return True
        return False


class Bridges:
    """Bridgeless inequalities: if a secondary cell is the only suppressed cell of a relation, its value can
    be computed and it protects nothing.

    Some optimal pattern satisfies ``x_j <= sum of the others`` in every relation (Fischetti, Salazar-Gonzalez
    2001, section 3). Cells that every attacker knows before publication do not count.
    """

    def __init__(self, problem: SuppressionProblem) -> None:
        wide = (problem.upper_bound > problem.lower_bound) & ~problem.keep
        matrix = sparse.csr_matrix(problem.relations)
        row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        used = wide[matrix.indices]
        self._row, self._cell = row[used], matrix.indices[used].astype(np.int64)
        self._rows = matrix.shape[0]
        self._free = ~problem.must
        protected = np.bincount(self._row, problem.must[self._cell], minlength=self._rows) > 0
        # a relation that contains a cell which every pattern suppresses needs no such inequality
        self._open = ~protected
        self._starts = np.searchsorted(self._row, np.arange(self._rows + 1))

    def cuts(self, x: np.ndarray) -> list[Cut]:
        """Return the inequalities that a pattern violates."""
        total = np.bincount(self._row, x[self._cell], minlength=self._rows)
        violated = (2 * x[self._cell] > total[self._row] + VIOLATED) & self._open[self._row]
        found = []
        for row, cell in zip(self._row[violated], self._cell[violated], strict=True):
            if self._free[cell]:
                cells = self._cell[self._starts[row] : self._starts[row + 1]]
                found.append(Cut(cells, np.where(cells == cell, -1.0, 1.0), 0.0))
        return found
