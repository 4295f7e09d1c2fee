"""The method recommended at scale: greedy on live errors, then local search on live errors.

One process works on the combinations of the whole file (`protect_frequencies`); or blocks settle
their own combinations in parallel (`protect_block`), and one global pass that starts from their counts
finishes on the errors of all blocks together. Errors that each block sees only for itself would add up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.algorithms.algorithm import Effort
from microguard.sdc.algorithms.nominal import ByTable, SearchParameters
from microguard.sdc.arguments import check_name
from microguard.sdc.errors import ImpossibleProtection, ShapeMismatch
from microguard.sdc.kernels.random import new_stream
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector, check_k, check_regions
from microguard.sdc.nominal.frequency_search.annealing import SOFT, Annealing
from microguard.sdc.nominal.frequency_search.greedy import settle
from microguard.sdc.nominal.frequency_search.objective import Objective
from microguard.sdc.nominal.frequency_search.search_state import new_state
from microguard.sdc.nominal.methods import ProtectionTask
from microguard.sdc.nominal.neighbours import sorted_combinations
from microguard.sdc.nominal.protected_counts import ProtectedCounts
from microguard.sdc.stop import Deadline, StoppedBy

#: Moves tried, per square root of the combinations below k. "exact" spends what "thorough" does: the
#: search proves nothing, and more work would not either.
_MOVES = {"fast": 100_000, "standard": 600_000, "thorough": 3_000_000, "exact": 3_000_000}
#: The most moves: beyond, a file has so much freedom that more work gains little. "fast" is to cost seconds
#: beside a job that sorts the file: on 129,000 combinations of a million records (77,600 below k = 3) 5.5
#: million moves take 7 s of one core and leave a chi-square 3 % above that of 13.2 million in 18 s.
_MOST = {"fast": 5_000_000, "standard": 150_000_000, "thorough": 2_000_000_000, "exact": 2_000_000_000}
#: Times as many moves where errors have maxima, which close many of the ways.
_BEHIND_A_WALL = 3
#: Part of the moves that go into filling cells to be kept, where the search has left some empty, before it
#: begins anew from there.
_FILLING = 4


@dataclass(frozen=True)
class ProtectedFrequencies:
    """Protected counts and what they do to the control tables.

    Attributes
    ----------
    counts : (m,) int64 array
        0 or at least k each, as many records as before in every region.
    chi2 : float
        Over the cells of the control tables.
    errors : dict
        Largest absolute error by table dimension.
    max_deviation : int
        Largest change of a combination.
    work : int
        Moves tried.
    stopped_by : "work" or "time"
    """

    counts: np.ndarray
    chi2: float
    errors: dict[int, int]
    max_deviation: int
    work: int
    stopped_by: StoppedBy


def protect_frequencies(
    frequencies: FrequencyVector,
    k: int,
    tables: ControlTables,
    *,
    start: np.ndarray | None = None,
    effort: Effort = "standard",
    seed: int = 0,
    max_absolute_error: ByTable | None = None,
    parameters: SearchParameters | None = None,
    kept_dimension: int = 0,
    allowed: np.ndarray | None = None,
    deadline: Deadline | None = None,
) -> ProtectedFrequencies:
    """Protect a frequency vector as a whole.

    Parameters
    ----------
    frequencies : FrequencyVector
        In canonical order; totals per region are kept, and k holds on combination and region.
    k : int
    tables : ControlTables
        Of these frequencies.
    start : (m,) array of counts, optional
        Where the search begins: by default the original counts, or what blocks have made of them. Counts
        below k are settled first, and totals that blocks missed are repaired.
    effort : how much work the search does
        "fast" is bounded to about 5 million moves, however many combinations there are.
    seed : int
    max_absolute_error : mapping of dimension, or of a table's names, to records, optional
        What the search is to respect; not a promise: see `errors`.
    kept_dimension : int
        Cells that at least k records hold, of tables of up to so many variables (a region is none), are not
        to be emptied: 1 keeps categories. Nor is this a promise: it may be impossible.
    parameters : SearchParameters, optional
    allowed : (m,) bool array, optional
        False for structural zeros: they end with no records.
    deadline : Deadline, optional
        A safety net: where it fires, the answer depends on the machine and says so.

    Raises
    ------
    InvalidParameter, TooFewRecords, ImpossibleProtection, ShapeMismatch
        A bad k, effort or parameter; a region with fewer than k records; a region all of whose
        combinations are structural zeros; counts of another length.
    """
    check_name("effort", effort, _MOVES)
    start = frequencies.counts if start is None else start
    allowed = _check(frequencies, start, k, allowed)
    at_risk = frequencies.at_risk(k)
    if not at_risk.any() and not frequencies.counts[~allowed].any():
        return _result(frequencies, tables, frequencies.counts, 0, "work")
    objective = Objective.of(
        frequencies, tables, k, parameters or SearchParameters(), max_absolute_error, kept_dimension
    )
    state = new_state(frequencies, start, k, tables, objective, allowed)
    settle(state, sorted_combinations(frequencies), SOFT)
    movable = np.flatnonzero(at_risk & allowed)
    if len(movable) == 0:
        return _result(frequencies, tables, state.counts, 0, "work")
    tried = _MOVES[effort] * (_BEHIND_A_WALL if max_absolute_error else 1)
    moves = min(int(tried * len(movable) ** 0.5), _MOST[effort])
    stream, deadline = new_stream(seed), deadline or Deadline.after(None)
    search = Annealing.of(state, frequencies, tables, objective, movable, stream)
    best, work, stopped_by = search.run(moves, deadline)
    if objective.emptied(tables, best) or objective.exceeded(tables, best):
        best, further, stopped_by = begun_anew(search, best, moves, deadline)
        work += further
    return _result(frequencies, tables, best, work, stopped_by)


def begun_anew(
    search: Annealing, counts: np.ndarray, moves: int, deadline: Deadline
) -> tuple[np.ndarray, int, StoppedBy]:
    """Search on behind a firm wall, from counts that leave cells empty, or beyond a maximum.

    Cells that are not to be emptied are filled first, by themselves: the way to such counts may be closed
    where small errors count, too.
    """
    objective, work = search.objective, 0
    stopped_by: StoppedBy = "work"
    phases = [(objective, moves, True)]
    if objective.emptied(search.tables, counts):
        phases.insert(0, (objective.only_kept, moves // _FILLING, False))
    for each, spent, firm in phases:
        counts, tried, stopped_by = search.at(counts, each).run(spent, deadline, firm)
        work += tried
    return counts, work, stopped_by


def protect_block(
    frequencies: FrequencyVector, k: int, tables: ControlTables, *, seed: int = 0
) -> ProtectedFrequencies:
    """Protect the combinations of one block by themselves, as a start of the global pass or a fallback.

    `tables` are the control tables of the block. Little work is done on errors that only the block
    sees, and bounds on errors are left to the global pass.
    """
    return protect_frequencies(frequencies, k, tables, effort="fast", seed=seed)


def _check(frequencies: FrequencyVector, start: np.ndarray, k: int, allowed: np.ndarray | None) -> np.ndarray:
    """Refuse what cannot be protected; return which combinations may be occupied."""
    check_k(frequencies.records, k)
    check_regions(frequencies, k)
    m = len(frequencies)
    allowed = np.ones(m, bool) if allowed is None else np.asarray(allowed, bool)
    if len(start) != m or len(allowed) != m:
        raise ShapeMismatch(f"{m} combinations, but {len(start)} counts and {len(allowed)} marks")
    regions = frequencies.region_matrix()
    records, open_combinations = regions @ frequencies.counts, regions @ allowed
    closed = int(((records > 0) & (open_combinations == 0)).sum())
    if closed:
        raise ImpossibleProtection(
            f"in {closed} regions every combination that occurs is declared a structural zero"
        )
    return allowed


def _result(
    frequencies: FrequencyVector,
    tables: ControlTables,
    counts: np.ndarray,
    work: int,
    stopped_by: StoppedBy,
) -> ProtectedFrequencies:
    return ProtectedFrequencies(
        counts=counts.copy(),
        chi2=tables.chi2(counts),
        errors=tables.max_absolute_error(counts),
        max_deviation=int(np.abs(counts - frequencies.counts).max(initial=0)),
        work=work,
        stopped_by=stopped_by,
    )


def solve_task(task: ProtectionTask, name: str) -> ProtectedCounts:
    """Protect a frequency vector by local search."""
    assert task.parameters is None or isinstance(task.parameters, SearchParameters)
    searched = protect_frequencies(
        task.frequencies,
        task.k,
        task.tables,
        effort=task.effort,
        seed=task.seed,
        max_absolute_error=task.max_absolute_error,
        parameters=task.parameters,
        kept_dimension=task.kept_dimension,
        allowed=task.allowed,
        deadline=task.deadline,
    )
    return ProtectedCounts(searched.counts, searched.stopped_by, work={"moves": searched.work})
