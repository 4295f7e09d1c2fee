"""Exact solution of the optimisation problems of SAFE (Cost 2023, (2.1.1)-(2.1.5) and section 3.2).

The program minimises max_t |b_t| - g_t over counts that are 0 or at least k and keep the number of records;
b_t is the error of cell t and g_t its extra error. The modified problem of section 3.2 adds w times the sum
of |y_i - y0_i| with w = 1 / n.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.algorithms.safe import SafeParams
from microguard.sdc.errors import SolverFailed
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector
from microguard.sdc.safe.method import extra_error
from microguard.sdc.solver import INFINITY, Limits, Program, Status, solve
from microguard.sdc.stop import Deadline, StoppedBy
from scipy import sparse


@dataclass(frozen=True)
class ExactSafe:
    """Protected counts, and the proved bound on the objective.

    Attributes
    ----------
    counts : (m,) int64 array
    objective : float
        Objective of the problem that was solved.
    lower_bound : float or None
        Proved lower bound on the objective; None if there is none.
    optimal : bool
    stopped_by : "proof", "work" or "time"
    """

    counts: np.ndarray
    objective: float
    lower_bound: float | None
    optimal: bool
    stopped_by: StoppedBy


def safe_exact(
    frequencies: FrequencyVector,
    k: int,
    tables: ControlTables,
    parameters: SafeParams,
    *,
    modified: bool,
    start: np.ndarray,
    deadline: Deadline,
) -> ExactSafe:
    """Solve SAFE-basic or its modification by a mixed-integer program.

    Parameters
    ----------
    start : (m,) int64 array
        Feasible counts (0 or at least k, with the number of records of each region unchanged). They are the
        start solution of the solver, and the result if the solver finds nothing better within
        `parameters.max_nodes`.

    Raises
    ------
    SolverFailed
    """
    objective = _Objective(frequencies, tables, parameters, modified)
    program = _program(frequencies, k, tables, objective)
    limits = Limits(nodes=parameters.max_nodes, seconds=deadline.remaining)
    answer = solve(program, limits, _point(frequencies, objective, start))
    if answer.status in (Status.INFEASIBLE, Status.UNBOUNDED, Status.FAILED):
        raise SolverFailed(
            f"SAFE: expected a solution of the integer program, found status {answer.status.value}. Choose "
            'algorithm = "safe"'
        )
    counts, value = start, objective.value(start)
    if answer.values is not None:
        candidate = np.rint(answer.values[: len(frequencies)]).astype(np.int64)
        if objective.value(candidate) < value:
            counts, value = candidate, objective.value(candidate)
    optimal = answer.status is Status.OPTIMAL
    return ExactSafe(
        counts=counts,
        objective=value,
        lower_bound=min(answer.bound, value) if np.isfinite(answer.bound) else None,
        optimal=optimal,
        stopped_by="proof" if optimal else "time" if answer.timed_out else "work",
    )


class _Objective:
    """Objective max_t |b_t| - g_t; in the modified problem, w times the sum of |y - y0| is added."""

    def __init__(
        self, frequencies: FrequencyVector, tables: ControlTables, parameters: SafeParams, modified: bool
    ) -> None:
        self.original, self.tables = frequencies.counts, tables
        self.extra = extra_error(parameters, tables.original)
        self.weight = 1.0 / frequencies.records if modified else 0.0

    def largest(self, counts: np.ndarray) -> float:
        return float((np.abs(self.tables.errors(counts)) - self.extra).max())

    def value(self, counts: np.ndarray) -> float:
        return self.largest(counts) + self.weight * float(np.abs(counts - self.original).sum())


def _program(frequencies: FrequencyVector, k: int, tables: ControlTables, objective: _Objective) -> Program:
    """Build the integer program in counts y, occupancy x, deviations d >= |y - y0| and the largest
    error z.
    """
    m, original = len(frequencies), frequencies.counts.astype(float)
    identity, nothing = sparse.identity(m, format="csr"), sparse.csr_matrix((m, m))
    totals = frequencies.region_matrix()
    records = totals @ original
    most = totals.T @ records
    incidence, cells = tables.incidence, len(tables.original)
    ones = sparse.csr_matrix(np.ones((cells, 1)))
    matrix = sparse.bmat(
        [
            [identity, -k * identity, None, None],
            [identity, -sparse.diags(most), None, None],
            [totals, sparse.csr_matrix((len(records), m)), None, None],
            [identity, nothing, -identity, None],
            [identity, nothing, identity, None],
            [incidence, None, None, -ones],
            [incidence, None, None, ones],
        ],
        format="csr",
    )
    free, value = np.full(m, INFINITY), tables.original.astype(float)
    unbounded = np.full(cells, INFINITY)
    return Program(
        costs=np.concatenate([np.zeros(2 * m), np.full(m, objective.weight), [1.0]]),
        matrix=matrix,
        row_lower=np.concatenate(
            [np.zeros(m), -free, records, -free, original, -unbounded, value - objective.extra]
        ),
        row_upper=np.concatenate(
            [free, np.zeros(m), records, original, free, value + objective.extra, unbounded]
        ),
        lower=np.concatenate([np.zeros(3 * m), [-INFINITY]]),
        upper=np.concatenate([most, np.ones(m), most, [INFINITY]]),
        integer=np.concatenate([np.ones(2 * m, bool), np.zeros(m + 1, bool)]),
    )


def _point(frequencies: FrequencyVector, objective: _Objective, counts: np.ndarray) -> np.ndarray:
    return np.concatenate(
        [
            counts,
            counts > 0,
            np.abs(counts - frequencies.counts),
            [objective.largest(counts)],
        ]
    )
