"""A linear program that is changed and solved repeatedly, such as the master problem of column generation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress

import highspy
import numpy as np
from microguard.sdc.errors import SolverFailed
from microguard.sdc.solver.highs import LINEAR_ATTEMPTS, new_highs, pass_program, read_solution, set_options
from microguard.sdc.solver.program import Limits, Options, Program, Solution, Status
from scipy import sparse


@dataclass(frozen=True)
class Basis:
    """Simplex basis: the state of each column and each row, as HiGHS stores it."""

    state: highspy.HighsBasis

    def of_columns(self, chosen: np.ndarray) -> Basis:
        """Restrict the basis to some columns (boolean array); HiGHS completes it if necessary."""
        restricted = highspy.HighsBasis()
        restricted.col_status = list(compress(self.state.col_status, chosen))
        restricted.row_status = self.state.row_status
        restricted.valid = True
        return Basis(restricted)


class Master:
    """A linear program to which columns and rows are added. Each solve starts from the last basis.

    Parameters
    ----------
    program : Program
    limits : Limits, optional

    Raises
    ------
    SolverFailed
        From all methods: if HiGHS rejects the program, an option or a change.
    """

    def __init__(self, program: Program, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._highs = new_highs(self._limits)
        # solver without a program, which stores the options to restore
        self._defaults = new_highs(self._limits)
        pass_program(self._highs, program)

    @property
    def columns(self) -> int:
        """Return the current number of columns."""
        return int(self._highs.getNumCol())

    @property
    def rows(self) -> int:
        """Return the current number of rows."""
        return int(self._highs.getNumRow())

    @property
    def basis(self) -> Basis:
        """Return the basis of the last solve."""
        return Basis(self._highs.getBasis())

    def set_basis(self, basis: Basis) -> None:
        """Start the next solve from a basis."""
        self._check(self._highs.setBasis(basis.state))

    def add_columns(
        self, costs: np.ndarray, entries: sparse.spmatrix, lower: np.ndarray, upper: np.ndarray
    ) -> None:
        """Add columns; `entries` is (rows, new columns)."""
        block = sparse.csc_matrix(entries)
        count = block.shape[1]
        if count == 0:
            return
        self._check(
            self._highs.addCols(
                count,
                np.asarray(costs, float),
                np.asarray(lower, float),
                np.asarray(upper, float),
                *_compressed(block),
            )
        )

    def add_rows(self, lower: np.ndarray, upper: np.ndarray, entries: sparse.spmatrix) -> None:
        """Add rows; `entries` is (new rows, columns)."""
        block = sparse.csr_matrix(entries)
        count = block.shape[0]
        if count == 0:
            return
        self._check(
            self._highs.addRows(
                count,
                np.asarray(lower, float),
                np.asarray(upper, float),
                *_compressed(block),
            )
        )

    def change_costs(self, costs: np.ndarray) -> None:
        """Replace the costs of all columns."""
        count = self.columns
        self._check(
            self._highs.changeColsCost(count, np.arange(count, dtype=np.int32), np.asarray(costs, float))
        )

    def set_options(self, options: Options) -> None:
        """Set options for all following solves."""
        set_options(self._highs, options)
        set_options(self._defaults, options)

    def change_bounds(self, columns: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
        """Replace the bounds of columns, given by their positions."""
        self._check(
            self._highs.changeColsBounds(
                len(columns),
                np.asarray(columns, np.int32),
                np.asarray(lower, float),
                np.asarray(upper, float),
            )
        )

    def change_cost(self, column: int, cost: float) -> None:
        """Replace the cost of one column."""
        self._check(self._highs.changeColCost(int(column), float(cost)))

    def solve(self, seconds: float = float("inf")) -> Solution:
        """Solve the current program from the last basis; if that fails, solve it from scratch by other
        algorithms.
        """
        limit = min(seconds, self._limits.seconds)
        solution = self._run(limit)
        for number, options in enumerate(LINEAR_ATTEMPTS[1:], start=2):
            if solution.status is not Status.FAILED:
                break
            self._highs.clearSolver()
            set_options(self._highs, options)
            solution = replace(self._run(limit), attempts=number)
            for name in options:
                _, standard = self._defaults.getOptionValue(name)
                set_options(self._highs, {name: standard})
        return solution

    def _run(self, seconds: float) -> Solution:
        self._highs.setOptionValue("time_limit", seconds + self._highs.getRunTime())
        self._highs.run()
        return read_solution(self._highs, integer=False)

    @staticmethod
    def _check(answer: highspy.HighsStatus) -> None:
        if answer == highspy.HighsStatus.kError:
            raise SolverFailed(
                "the solver rejected a change of the program; this is a fault of microguard, please report it"
            )


def _compressed(
    block: sparse.csc_matrix | sparse.csr_matrix,
) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Return the number of entries, the start of each column or row, the indices and the entries."""
    starts, indices = block.indptr[:-1].astype(np.int32), block.indices.astype(np.int32)
    return block.nnz, starts, indices, block.data.astype(float)
