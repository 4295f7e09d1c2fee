"""A linear program that grows and changes between solves: the master problem of column generation, and any
other of which many like it are asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress

import highspy
import numpy as np
from microguard.sdc.errors import SolverFailed
from microguard.sdc.solver.highs import LINEAR_ATTEMPTS, new_highs, read_out, set_options, take_in
from microguard.sdc.solver.program import Limits, Options, Program, Solution, Status
from scipy import sparse


@dataclass(frozen=True)
class Basis:
    """Where the solver ended: the state of each column and each row, in its own terms."""

    state: highspy.HighsBasis

    def of_columns(self, chosen: np.ndarray) -> Basis:
        """The same where only the columns are left that a boolean array names; the solver completes it."""
        left = highspy.HighsBasis()
        left.col_status = list(compress(self.state.col_status, chosen))
        left.row_status = self.state.row_status
        left.valid = True
        return Basis(left)


class Master:
    """A linear program that grows: columns and rows are added, the basis is kept between solves."""

    def __init__(self, program: Program, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._highs = new_highs(self._limits)
        self._usual = new_highs(self._limits)  # never given a program: the options to go back to
        take_in(self._highs, program)

    @property
    def columns(self) -> int:
        """Number of columns now."""
        return int(self._highs.getNumCol())

    @property
    def rows(self) -> int:
        """Number of rows now."""
        return int(self._highs.getNumRow())

    @property
    def basis(self) -> Basis:
        """Where the last solve ended."""
        return Basis(self._highs.getBasis())

    def begin_at(self, basis: Basis) -> None:
        """Begin the next solve there instead."""
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

    def use(self, options: Options) -> None:
        """Solve with these options from now on."""
        set_options(self._highs, options)
        set_options(self._usual, options)

    def change_bounds(self, columns: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
        """Replace the bounds of some columns, given by their positions."""
        self._check(
            self._highs.changeColsBounds(
                len(columns),
                np.asarray(columns, np.int32),
                np.asarray(lower, float),
                np.asarray(upper, float),
            )
        )

    def change_row_bounds(self, rows: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
        """Replace the bounds of some rows, given by their positions."""
        self._check(
            self._highs.changeRowsBounds(  # type: ignore[attr-defined]  # missing in the stubs
                len(rows), np.asarray(rows, np.int32), np.asarray(lower, float), np.asarray(upper, float)
            )
        )

    def change_cost(self, column: int, cost: float) -> None:
        """Replace the cost of one column."""
        self._check(self._highs.changeColCost(int(column), float(cost)))

    def solve(self, seconds: float = float("inf")) -> Solution:
        """Solve the program as it stands, from the last basis; from none, another way, where that failed."""
        limit = min(seconds, self._limits.seconds)
        solution = self._run(limit)
        for number, options in enumerate(LINEAR_ATTEMPTS[1:], start=2):
            if solution.status is not Status.FAILED:
                break
            self._highs.clearSolver()
            set_options(self._highs, options)
            solution = replace(self._run(limit), attempts=number)
            for name in options:
                _, standard = self._usual.getOptionValue(name)
                set_options(self._highs, {name: standard})
        return solution

    def _run(self, seconds: float) -> Solution:
        self._highs.setOptionValue("time_limit", seconds + self._highs.getRunTime())
        self._highs.run()
        return read_out(self._highs, integer=False)

    @staticmethod
    def _check(answer: highspy.HighsStatus) -> None:
        if answer == highspy.HighsStatus.kError:
            raise SolverFailed("the solver refused a change of the master problem")


def _compressed(
    block: sparse.csc_matrix | sparse.csr_matrix,
) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Number of entries, where each column or row begins, and the entries, as HiGHS takes them."""
    starts, indices = block.indptr[:-1].astype(np.int32), block.indices.astype(np.int32)
    return block.nnz, starts, indices, block.data.astype(float)
