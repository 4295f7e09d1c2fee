"""SAFE for a frame or a frequency vector, by the heuristic or by exact optimisation."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from microguard.sdc.algorithms.safe import SAFE, SafeParams
from microguard.sdc.arguments import check_name, checked_seed
from microguard.sdc.errors import ImpossibleProtection, InvalidParameter
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector, check_k, check_regions, from_frame
from microguard.sdc.nominal.frequency_search.greedy import settle
from microguard.sdc.nominal.frequency_search.objective import Objective, SearchParameters
from microguard.sdc.nominal.frequency_search.search_state import new_state
from microguard.sdc.nominal.methods import ProtectionTask
from microguard.sdc.nominal.neighbours import sorted_combinations
from microguard.sdc.nominal.protected_counts import Certificate, ProtectedCounts
from microguard.sdc.nominal.transport import carry_back, transport
from microguard.sdc.safe.exact import safe_exact
from microguard.sdc.safe.method import safe_counts
from microguard.sdc.stop import Deadline, StoppedBy

#: Penalty per squared error beyond SAFE's largest errors, while the numbers of records are restored.
_WALL = 1e6


@dataclass(frozen=True)
class SafeFrequencies:
    """Counts protected by SAFE.

    Attributes
    ----------
    counts : (m,) int64 array
        Each count is 0 or at least k.
    errors : dict of table dimension to int
        Largest absolute error of a cell.
    record_change : int
        Number of protected minus number of original records; 0 with `keep_records`.
    objective, lower_bound, optimal
        Result of an exact problem; None, None and False for the heuristic.
    stopped_by : "proof", "work" or "time"
    """

    counts: np.ndarray
    errors: dict[int, int]
    record_change: int
    objective: float | None
    lower_bound: float | None
    optimal: bool
    stopped_by: StoppedBy


@dataclass(frozen=True)
class SafeResult:
    """A frame protected by SAFE.

    Attributes
    ----------
    protected : DataFrame
        Same columns and dtypes. The index is the same if the number of records has not changed. Otherwise the
        records follow the order of the frequency vector and are numbered from 0.
    chi2 : float
        Chi-square over the cells of the control tables.
    errors, record_change, objective, lower_bound, optimal, stopped_by
        See `SafeFrequencies`.
    algorithm : str
    """

    protected: pd.DataFrame
    chi2: float
    errors: dict[int, int]
    record_change: int
    objective: float | None
    lower_bound: float | None
    optimal: bool
    algorithm: str
    stopped_by: StoppedBy


def safe(
    frame: pd.DataFrame,
    k: int = 3,
    control_tables: int | Sequence[Sequence[Hashable]] = 2,
    *,
    algorithm: str = "safe",
    parameters: SafeParams | None = None,
    keep_records: bool = False,
    seed: int = 0,
    time_limit: float | None = None,
) -> SafeResult:
    """Make a frame k-anonymous with small largest errors of its control tables.

    Parameters
    ----------
    frame : DataFrame (n, a)
        Nominal variables of any dtype. A missing value is a separate category.
    k : int
        Least number of records of every published key combination, 2 <= k <= n.
    control_tables : int or sequence of tuples of names
        All tables up to this dimension, or tables given by their variables.
    algorithm : str
        "safe" (Algorithms 1 to 4), "safe-exact" (section 2.1) or "modified-safe-exact" (section 3.2).
    parameters : SafeParams, optional
        Parameters of Appendix A by default.
    keep_records : bool
        Whether "safe" must keep the number of records; the exact problems always keep it.
    seed : int
        Accepted for a uniform interface. SAFE uses no random numbers.
    time_limit : float, optional
        Seconds for the exact problems, as a safety net.

    Returns
    -------
    SafeResult
        Errors and the change of the number of records are counted in records.

    Raises
    ------
    TooFewRecords
        If there are fewer than k records.
    InvalidParameter
        If k, the algorithm, a control table or the time limit is invalid; if SAFE cannot eliminate every key
        combination below k with these parameters; if the frame has no variables, or values that cannot be
        compared.
    UnknownVariable
        If two variables have the same name, or a control table names an unknown variable.
    ImpossibleProtection
        If `keep_records` is false and no record would remain.
    SolverFailed
        If the solver ends an exact problem without a conclusive status.

    References
    ----------
    Höhne 2015; Cost 2023, chapters 2 and 3 and Appendix A.
    """
    checked_seed(seed)
    coded = from_frame(frame)
    check_k(len(frame), k)
    tables = ControlTables.of(coded.frequencies, control_tables)
    solution = safe_frequencies(
        coded.frequencies,
        k,
        tables,
        algorithm=algorithm,
        parameters=parameters,
        keep_records=keep_records,
        deadline=Deadline.after(time_limit),
    )
    if solution.record_change == 0:
        flows = transport(coded.frequencies, solution.counts)
        protected = coded.decode_combinations(carry_back(coded.combination, flows))
    else:
        protected = coded.carriers().take(np.repeat(np.arange(len(solution.counts)), solution.counts))
        protected = protected.reset_index(drop=True)
    return SafeResult(
        protected=protected,
        chi2=tables.chi2(solution.counts),
        errors=solution.errors,
        record_change=solution.record_change,
        objective=solution.objective,
        lower_bound=solution.lower_bound,
        optimal=solution.optimal,
        algorithm=algorithm,
        stopped_by=solution.stopped_by,
    )


def safe_frequencies(
    frequencies: FrequencyVector,
    k: int,
    tables: ControlTables,
    *,
    algorithm: str = "safe",
    parameters: SafeParams | None = None,
    keep_records: bool = False,
    deadline: Deadline | None = None,
) -> SafeFrequencies:
    """Protect a frequency vector by SAFE; with `keep_records` the number of records of each region is
    preserved.

    Raises
    ------
    InvalidParameter
        If the algorithm is unknown or k is invalid.
    TooFewRecords
        If the file, or a region whose number of records must be kept, has fewer than k records.
    """
    check_name("algorithm", algorithm, SAFE)
    check_k(frequencies.records, k)
    if parameters is None:
        parameters = SafeParams()
    if not isinstance(parameters, SafeParams):
        raise InvalidParameter(f"parameters: expected SafeParams, found {type(parameters).__name__}")
    exact = algorithm != "safe"
    counts = safe_counts(frequencies, k, tables, parameters)[0]
    if keep_records or exact:
        counts = restore_records(frequencies, counts, k, tables)
    if not counts.any():
        raise ImpossibleProtection(
            "SAFE emptied every key combination, so no record would be published. Set keep_records, or "
            "raise allowed_deviation and the bounds"
        )
    objective, bound, optimal = None, None, False
    stopped_by: StoppedBy = "work"
    if exact:
        solution = safe_exact(
            frequencies,
            k,
            tables,
            parameters,
            modified=algorithm == "modified-safe-exact",
            start=counts,
            deadline=deadline or Deadline.after(None),
        )
        counts, objective, bound = solution.counts, solution.objective, solution.lower_bound
        optimal, stopped_by = solution.optimal, solution.stopped_by
    return SafeFrequencies(
        counts=counts,
        errors=tables.max_absolute_error(counts),
        record_change=int(counts.sum()) - frequencies.records,
        objective=objective,
        lower_bound=bound,
        optimal=optimal,
        stopped_by=stopped_by,
    )


def restore_records(
    frequencies: FrequencyVector, counts: np.ndarray, k: int, tables: ControlTables
) -> np.ndarray:
    """Restore every region's number of records at least cost, without exceeding the largest errors of
    SAFE.
    """
    check_regions(frequencies, k)
    maxima = tables.max_absolute_error(counts)
    objective = Objective.of(frequencies, tables, k, SearchParameters(), maxima)
    state = new_state(frequencies, counts, k, tables, objective, np.ones(len(counts), bool))
    settle(state, sorted_combinations(frequencies), _WALL)
    return state.counts


def solve_task(task: ProtectionTask, name: str) -> ProtectedCounts:
    """Protect a frequency vector by an algorithm of `sdc.algorithms.safe`; the number of records of each
    region is preserved.
    """
    assert task.parameters is None or isinstance(task.parameters, SafeParams)
    protected = safe_frequencies(
        task.frequencies,
        task.k,
        task.tables,
        algorithm=name,
        parameters=task.parameters,
        keep_records=True,
        deadline=task.deadline,
    )
    proved: tuple[Certificate, ...] = ()
    if protected.objective is not None:
        proved = (Certificate.of(name, "largest error above its allowance", protected.objective, protected),)
    return ProtectedCounts(protected.counts, protected.stopped_by, certificates=proved)
