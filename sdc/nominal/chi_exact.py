"""Chi-ex: k-anonymous frequency vector with minimal chi-square, solved exactly (Cost 2023, section 5.6).

The counts y_i are 0 or at least k, the total of each region is kept, and the errors of the control tables are
minimised. A cell is a sum of such counts, so its count is 0 or at least k too. The lower convex hulls of the
error over these counts turn (5.6.1)-(5.6.5) into a mixed-integer linear program. The objective of a known
solution bounds every cell and every count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from microguard.sdc.algorithms.nominal import ChiExactParameters
from microguard.sdc.errors import InvalidParameter
from microguard.sdc.nominal.error_hull import ErrorRows, HullProgram, hull_program, merge_cells
from microguard.sdc.nominal.frequency import FrequencyVector, check_k
from microguard.sdc.nominal.frequency_search.objective import Objective as SearchObjective
from microguard.sdc.nominal.frequency_search.search import default_parameters, protect_frequencies
from microguard.sdc.nominal.methods import ProtectionTask
from microguard.sdc.nominal.protected_counts import (
    OBJECTIVE_TOLERANCE,
    Certificate,
    Objective,
    ProtectedCounts,
)
from microguard.sdc.solver import INFINITY, Limits, Program, Status, solve
from microguard.sdc.stop import StoppedBy
from scipy import sparse

#: Node limits of branch and bound: for a whole file (at most minutes for 200 records), and for a block of a
#: run (seconds).
NODES, BLOCK_NODES = 2_000, 20


@dataclass(frozen=True)
class ChiExact:
    """A protected frequency vector, and the proved bound on its objective.

    Attributes
    ----------
    counts : (m,) int64 array
        Counts that are 0 or at least k and keep the total of each region.
    chi2 : float
        Chi-square over the cells of the control tables.
    objective : float
        The minimised objective (5.6.1): chi2 plus w times the sum of |y - y0|.
    lower_bound : float or None
        Valid bound on the objective of all such vectors.
    optimal : bool
        Whether the objective is proved minimal.
    nodes : int
        Number of branch-and-bound nodes.
    stopped_by : "proof", "work" or "time"
    """

    counts: np.ndarray
    chi2: float
    objective: float
    lower_bound: float | None
    optimal: bool
    nodes: int
    stopped_by: StoppedBy

    @property
    def gap(self) -> float | None:
        """Return (objective - lower_bound) / objective; None without a bound."""
        if self.lower_bound is None:
            return None
        return 0.0 if self.objective == 0 else max(0.0, 1.0 - self.lower_bound / self.objective)


def chi_exact(task: ProtectionTask, *, start: np.ndarray | None = None) -> ChiExact:
    """Solve Chi-ex, starting from `start` or from a local search. The total of each region is preserved.

    Parameters
    ----------
    task : ProtectionTask
        The problem; its `parameters` are `ChiExactParameters` or None.
    start : (m,) int array, optional
        Feasible counts.

    Raises
    ------
    TooFewRecords, InvalidParameter
    """
    assert task.parameters is None or isinstance(task.parameters, ChiExactParameters)
    frequencies, k, tables, deadline = task.frequencies, task.k, task.tables, task.deadline
    parameters = task.parameters or ChiExactParameters()
    check_k(frequencies.records, k)
    if start is None:
        search = ProtectionTask(
            frequencies,
            k,
            tables,
            seed=task.seed,
            parameters=default_parameters(frequencies),
            deadline=deadline,
        )
        start = protect_frequencies(search).counts
    _check_start(frequencies, k, start)
    weight = parameters.deviation_weight
    nodes = NODES if parameters.nodes is None else parameters.nodes

    def value(counts: np.ndarray) -> float:
        return tables.chi2(counts) + weight * float(np.abs(counts - frequencies.counts).sum())

    known = value(start)
    rows = merge_cells(tables.incidence, np.zeros(len(tables.original)), tables.original)
    attainable = _attainable(rows, k, frequencies, known)
    program, hull = _program(frequencies, k, rows, attainable, known, weight)
    point = _values_at(start, frequencies, rows, hull, weight)
    answer = solve(
        program,
        Limits(nodes=nodes, seconds=deadline.remaining, absolute_gap=OBJECTIVE_TOLERANCE),
        point,
    )
    counts = start
    if answer.values is not None:
        solved = np.round(answer.values[: len(frequencies)]).astype(np.int64)
        counts = solved if value(solved) < known else start
    best = value(counts)
    optimal = answer.status is Status.OPTIMAL
    bound = min(answer.bound, best)
    return ChiExact(
        counts=counts,
        chi2=tables.chi2(counts),
        objective=best,
        lower_bound=bound if np.isfinite(bound) else None,
        optimal=optimal,
        nodes=answer.nodes,
        stopped_by="proof" if optimal else ("time" if answer.timed_out else "work"),
    )


def solve_within_maxima(task: ProtectionTask, errors: SearchObjective) -> np.ndarray | None:
    """Return counts with small chi-square and no error above its maximum, (m,); None if no such counts were
    found.

    The maxima, the cells that must be kept and the structural zeros of the task hold as constraints. The
    program stops after `BLOCK_NODES` nodes, so None does not prove that there are no such counts.
    """
    frequencies, tables = task.frequencies, task.tables
    rows = merge_cells(tables.incidence, np.zeros(len(tables.original)), tables.original)
    used = rows.row >= 0
    low, high = np.zeros(rows.incidence.shape[0]), np.full(rows.incidence.shape[0], np.inf)
    maximum = errors.table_cost[tables.table, 2]
    np.maximum.at(low, rows.row[used], (tables.original - maximum)[used])
    np.minimum.at(high, rows.row[used], (tables.original + maximum)[used])
    if task.kept_dimension:
        np.maximum.at(low, rows.row[used], np.minimum(errors.kept, 1)[used])
    attainable = [
        points[(points >= least) & (points <= most)]
        for points, least, most in zip(_attainable(rows, task.k, frequencies, np.inf), low, high, strict=True)
    ]
    if not all(map(len, attainable)):
        return None
    program, _ = _program(frequencies, task.k, rows, attainable, np.inf, 0.0, task.allowed)
    answer = solve(program, Limits(nodes=BLOCK_NODES, seconds=task.deadline.remaining))
    if answer.values is None:
        return None
    counts = np.round(answer.values[: len(frequencies)]).astype(np.int64)
    _check_start(frequencies, task.k, counts)
    return None if errors.exceeded(tables, counts) or errors.emptied(tables, counts) else counts


def _program(
    frequencies: FrequencyVector,
    k: int,
    rows: ErrorRows,
    attainable: list[np.ndarray],
    known: float,
    weight: float,
    allowed: np.ndarray | None = None,
) -> tuple[Program, HullProgram]:
    """Build the program (5.6.1)-(5.6.5) over convex hulls of the errors.

    Columns are the counts y, binaries for y > 0, the pieces of the hulls and, with a weight, the deviations
    |y - y0|. Solutions with a chi-square above the objective `known` are excluded.
    """
    m = len(frequencies)
    regions = frequencies.region_matrix()
    totals = regions @ frequencies.counts.astype(float)
    hull = hull_program(rows, attainable, known)
    most = _largest_counts(
        rows, hull.first + np.bincount(_rows_of(hull.pieces), hull.lengths, len(hull.first))
    )
    most = np.minimum(most, regions.T @ totals)
    most[most < k] = 0
    if allowed is not None:
        most[~allowed] = 0
    pieces = len(hull.costs)
    one = sparse.identity(m, format="csr")
    matrix = sparse.vstack(
        [
            sparse.hstack([rows.incidence, _nothing(len(hull.first), m), hull.pieces]),
            sparse.hstack([regions, _nothing(len(totals), m + pieces)]),  # constraint (5.6.3)
            sparse.hstack([one, -k * one, _nothing(m, pieces)]),  # constraint (5.6.4): y >= k or
            sparse.hstack([one, -sparse.diags(most), _nothing(m, pieces)]),  # y = 0
        ]
    )
    program = Program(
        costs=np.concatenate([np.zeros(2 * m), hull.costs]),
        matrix=matrix,
        row_lower=np.concatenate([hull.first, totals, np.zeros(m), np.full(m, -INFINITY)]),
        row_upper=np.concatenate([hull.first, totals, np.full(m, INFINITY), np.zeros(m)]),
        lower=np.zeros(2 * m + pieces),
        upper=np.concatenate([most, (most > 0).astype(float), hull.lengths]),
        integer=np.arange(2 * m + pieces) < 2 * m,
        offset=hull.offset,
    )
    return (program if weight == 0 else _with_deviations(program, frequencies.counts, weight)), hull


def _values_at(
    counts: np.ndarray, frequencies: FrequencyVector, rows: ErrorRows, hull: HullProgram, weight: float
) -> np.ndarray:
    """Return the values of the program's columns for feasible counts."""
    deviations = np.abs(counts - frequencies.counts) if weight else np.empty(0)
    return np.concatenate([counts, counts > 0, hull.fill(rows.incidence @ counts), deviations])


def _with_deviations(program: Program, original: np.ndarray, weight: float) -> Program:
    """Return the program with an additional column d >= |y - y0| per key combination, whose cost is the
    deviation weight.
    """
    m, columns = len(original), len(program.costs)
    one, zeros = sparse.identity(m, format="csr"), _nothing(m, columns - m)
    return Program(
        costs=np.concatenate([program.costs, np.full(m, weight)]),
        matrix=sparse.vstack(
            [
                sparse.hstack([program.matrix, _nothing(program.matrix.shape[0], m)]),
                sparse.hstack([one, zeros, one]),
                sparse.hstack([one, zeros, -one]),
            ]
        ),
        row_lower=np.concatenate([program.row_lower, original, np.full(m, -INFINITY)]),
        row_upper=np.concatenate([program.row_upper, np.full(m, INFINITY), original]),
        lower=np.concatenate([program.lower, np.zeros(m)]),
        upper=np.concatenate([program.upper, np.full(m, INFINITY)]),
        integer=np.concatenate([np.asarray(program.integer, bool), np.zeros(m, bool)]),
        offset=program.offset,
    )


def _attainable(rows: ErrorRows, k: int, frequencies: FrequencyVector, known: float) -> list[np.ndarray]:
    """Return the attainable counts of each row: 0, and all counts of at least k for which the row's error is
    at most `known`.

    If a row consists of whole regions, its only attainable count is the total of these regions.
    """
    regions = frequencies.region_matrix()
    totals = regions @ frequencies.counts.astype(float)
    # number of combinations of each region that occur in each row
    touched = (regions @ rows.incidence.T).toarray()
    members = np.asarray(regions.sum(axis=1)).ravel()[:, None]
    whole = ((touched == 0) | (touched == members)).all(axis=0)
    largest = totals @ (touched > 0)
    middle = -rows.linear / (2 * rows.square)
    reach = np.sqrt(np.maximum(0.0, (known - rows.constant) / rows.square + middle**2)) + 1
    points = []
    for row in range(len(whole)):
        if whole[row]:
            points.append(np.array([largest[row]]))
            continue
        low = int(max(k, middle[row] - reach[row]))
        high = int(min(largest[row], middle[row] + reach[row]))
        points.append(np.concatenate([[0], np.arange(low, max(high, low) + 1)]))
    return points


def _largest_counts(rows: ErrorRows, largest: np.ndarray) -> np.ndarray:
    """Return the largest possible count of each combination: the smallest maximum among its cells."""
    by_combination = rows.incidence.tocsc()
    counts = np.full(by_combination.shape[1], np.inf)
    for i in range(len(counts)):
        cells = by_combination.indices[by_combination.indptr[i] : by_combination.indptr[i + 1]]
        counts[i] = largest[cells].min(initial=np.inf)
    return counts


def _rows_of(pieces: sparse.csr_matrix) -> np.ndarray:
    return np.repeat(np.arange(pieces.shape[0]), np.diff(pieces.indptr))


def _nothing(rows: int, columns: int) -> sparse.csr_matrix:
    return sparse.csr_matrix((rows, columns))


def _check_start(frequencies: FrequencyVector, k: int, start: np.ndarray) -> None:
    regions = frequencies.region_matrix()
    if (
        start.shape != frequencies.counts.shape
        or ((start != 0) & (start < k)).any()
        or (regions @ start != regions @ frequencies.counts).any()
    ):
        raise InvalidParameter(
            "start: expected one count per key combination (0 or at least k) that preserves the total of "
            "each region, found other counts. Leave start out to search for one"
        )


def solve_task(task: ProtectionTask, name: str) -> ProtectedCounts:
    """Protect the frequency vector of a task by Chi-ex."""
    assert task.parameters is None or isinstance(task.parameters, ChiExactParameters)
    parameters = task.parameters or ChiExactParameters()
    if parameters.nodes is None and task.in_block and task.effort != "exact":
        parameters = replace(parameters, nodes=BLOCK_NODES)
    proved = chi_exact(replace(task, parameters=parameters))
    alone = parameters.deviation_weight == 0
    objective: Objective = "chi-square" if alone else "chi-square and deviations"
    return ProtectedCounts(
        proved.counts,
        proved.stopped_by,
        lower_bound=proved.lower_bound if alone else None,
        optimal=proved.optimal and alone,
        certificates=(Certificate.of(name, objective, proved.objective, proved),),
        work={"nodes": proved.nodes},
    )
