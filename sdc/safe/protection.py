"""SAFE on a frame or on a frequency vector: the method, or the problem behind it solved exactly."""

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

#: Cost of a squared error above SAFE's own maxima while the number of records is restored.
_WALL = 1e6


@dataclass(frozen=True)
class SafeFrequencies:
    """Protected counts of SAFE.

    Attributes
    ----------
    counts : (m,) int64 array, 0 or at least k
    errors : largest absolute error by table dimension
    record_change : records after minus before (0 where they are kept)
    objective, lower_bound, optimal : of the exact problems; None, None, False for the method
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
        Same columns and dtypes; same index where the number of records is what it was. Otherwise the
        records are those of the new frequency vector, numbered from 0, in the order of its values.
    chi2 : float
        Over the control tables.
    errors, record_change, objective, lower_bound, optimal, stopped_by : of `SafeFrequencies`
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
    """Make a frame k-anonymous with small largest errors in its control tables.

    Parameters
    ----------
    frame : DataFrame (n, a)
        Nominal variables of any dtype; missing values are one more category.
    k : int
        Least records of every combination published, 2 <= k <= n.
    control_tables : int or sequence of tuples of names
        All tables up to a dimension, or those named.
    algorithm : str
        "safe" (Algorithms 1 to 4), "safe-exact" (section 2.1) or "modified-safe-exact" (section 3.2).
    parameters : SafeParams, optional
        Appendix A's by default.
    keep_records : bool
        Whether "safe" has to end with as many records as before; the exact problems always do.
    seed : int
        Taken for the sake of one interface; SAFE draws nothing.
    time_limit : float, optional
        Seconds for the exact problems, a safety net.

    Returns
    -------
    SafeResult
        Errors and change of the number of records are in records.

    Raises
    ------
    TooFewRecords
        Fewer than k records, or none.
    InvalidParameter
        A bad k, algorithm, control table or time limit; parameters within which SAFE cannot eliminate every
        combination below k; a frame without variables, or with values that cannot be told equal or not.
    UnknownVariable
        Two variables of one name, or a control table of a name that is no variable.
    ImpossibleProtection
        Without keep_records: no record at all would be left.
    SolverFailed
        An exact problem ended in a state from which nothing can be concluded.

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
    """SAFE on a frequency vector; with `keep_records` every region keeps its number of records.

    Raises
    ------
    InvalidParameter, TooFewRecords
        An unknown algorithm or bad k; fewer than k records in the file, or in a region whose number
        of records has to be kept.
    """
    check_name("algorithm", algorithm, SAFE)
    check_k(frequencies.records, k)
    if parameters is None:
        parameters = SafeParams()
    if not isinstance(parameters, SafeParams):
        raise InvalidParameter(f"parameters takes SafeParams, found {type(parameters).__name__}")
    exact = algorithm != "safe"
    counts = safe_counts(frequencies, k, tables, parameters)[0]
    if keep_records or exact:
        counts = restore_records(frequencies, counts, k, tables)
    if not counts.any():
        raise ImpossibleProtection(
            "SAFE emptied every combination and left no record at all. Set keep_records, or allow more by "
            "allowed_deviation and the bounds"
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
    """Counts that keep every region's records, changed where it costs least within SAFE's maxima."""
    check_regions(frequencies, k)
    maxima = tables.max_absolute_error(counts)
    objective = Objective.of(frequencies, tables, k, SearchParameters(), maxima)
    state = new_state(frequencies, counts, k, tables, objective, np.ones(len(counts), bool))
    settle(state, sorted_combinations(frequencies), _WALL)
    return state.counts


def solve_task(task: ProtectionTask, name: str) -> ProtectedCounts:
    """Protect a frequency vector by an algorithm of `sdc.algorithms.safe`; every region keeps its records."""
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
        proved = (Certificate.of(name, "largest error", protected.objective, protected),)
    return ProtectedCounts(protected.counts, protected.stopped_by, certificates=proved)
