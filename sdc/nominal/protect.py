"""The method recommended at scale: greedy on live errors, then local search on live errors.

One process works on the combinations of the whole file (`protect_frequencies`); or blocks settle
their own combinations in parallel (`protect_block`) and one global pass on the errors of all blocks
together finishes (`reconcile`). Errors that each block sees only for itself would add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sdc.errors import ImpossibleProtection, InvalidParameter, ShapeMismatch, TooFewRecords
from sdc.nominal.annealing import SOFT, Annealing
from sdc.nominal.control_tables import ControlTables
from sdc.nominal.frequency import FrequencyVector, check_k
from sdc.nominal.greedy import settle
from sdc.nominal.neighbours import sorted_combinations
from sdc.nominal.objective import ByDimension, Objective, SearchParameters
from sdc.nominal.random_stream import new_stream
from sdc.nominal.search_state import new_state
from sdc.stop import Deadline, StoppedBy

Effort = Literal["fast", "standard", "thorough", "exact"]


#: Moves tried, per square root of the combinations below k. "exact" spends what "thorough" does: the
#: search proves nothing, and more work would not either.
_MOVES = {"fast": 100_000, "standard": 600_000, "thorough": 3_000_000, "exact": 3_000_000}
#: The most moves: beyond, a file has so much freedom that more work gains little. "fast" is to cost seconds
#: beside a job that sorts the file: on 129,000 combinations of a million records (77,600 below k = 3) 5.5
#: million moves take 7 s of one core and leave a chi-square 3 % above that of 13.2 million in 18 s.
_MOST = {"fast": 5_000_000, "standard": 150_000_000, "thorough": 2_000_000_000, "exact": 2_000_000_000}


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
    effort: Effort = "standard",
    seed: int = 0,
    max_absolute_error: ByDimension | None = None,
    parameters: SearchParameters | None = None,
    allowed: np.ndarray | None = None,
    deadline: Deadline | None = None,
) -> ProtectedFrequencies:
    """Protect a frequency vector as a whole.

    Parameters
    ----------
    frequencies : FrequencyVector
        Totals per region are kept; k holds on combination and region.
    k : int
    tables : ControlTables
        Of these frequencies.
    effort : how much work the search does
        "fast" is bounded to about 5 million moves, however many combinations there are.
    seed : int
    max_absolute_error : mapping of dimension to records, optional
        What the search is to respect; not a promise: see `errors`.
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
    return reconcile(
        frequencies,
        frequencies.counts,
        k,
        tables,
        effort=effort,
        seed=seed,
        max_absolute_error=max_absolute_error,
        parameters=parameters,
        allowed=allowed,
        deadline=deadline,
    )


def protect_block(
    frequencies: FrequencyVector,
    k: int,
    tables: ControlTables,
    *,
    seed: int = 0,
    parameters: SearchParameters | None = None,
    allowed: np.ndarray | None = None,
    deadline: Deadline | None = None,
) -> ProtectedFrequencies:
    """Protect the combinations of one block by themselves, as a start for `reconcile`.

    `tables` are the control tables of the block. Little work is done on errors that only the block
    sees, and bounds on errors are left to the global pass.
    """
    return protect_frequencies(
        frequencies,
        k,
        tables,
        effort="fast",
        seed=seed,
        parameters=parameters,
        allowed=allowed,
        deadline=deadline,
    )


def reconcile(
    frequencies: FrequencyVector,
    counts: np.ndarray,
    k: int,
    tables: ControlTables,
    *,
    effort: Effort = "standard",
    seed: int = 0,
    max_absolute_error: ByDimension | None = None,
    parameters: SearchParameters | None = None,
    allowed: np.ndarray | None = None,
    deadline: Deadline | None = None,
) -> ProtectedFrequencies:
    """The global pass after the blocks: search on the errors of all of them together.

    Parameters
    ----------
    frequencies : FrequencyVector
        Of the whole file, in canonical order, whatever the order of the blocks was.
    counts : (m,) array
        The blocks' counts in that order. Totals they missed are repaired.

    Other parameters, result and errors are those of `protect_frequencies`.
    """
    if effort not in _MOVES:
        raise InvalidParameter(f"effort must be one of {', '.join(_MOVES)}, found {effort!r}")
    allowed = _check(frequencies, counts, k, allowed)
    at_risk = frequencies.at_risk(k)
    if not at_risk.any() and not frequencies.counts[~allowed].any():
        return _result(frequencies, tables, frequencies.counts, 0, "work")
    objective = Objective.of(frequencies, tables, k, parameters or SearchParameters(), max_absolute_error)
    state = new_state(frequencies, counts, k, tables, objective, allowed)
    settle(state, sorted_combinations(frequencies), SOFT)
    movable = np.flatnonzero(at_risk & allowed)
    if len(movable) == 0:
        return _result(frequencies, tables, state.counts, 0, "work")
    moves = min(int(_MOVES[effort] * len(movable) ** 0.5), _MOST[effort])
    search = Annealing.of(state, frequencies, tables, objective, movable, new_stream(seed))
    found, work, stopped_by = search.run(moves, deadline or Deadline.after(None))
    return _result(frequencies, tables, found, work, stopped_by)


def _check(
    frequencies: FrequencyVector, counts: np.ndarray, k: int, allowed: np.ndarray | None
) -> np.ndarray:
    """Refuse what cannot be protected; return which combinations may be occupied."""
    check_k(frequencies.records, k)
    m = len(frequencies)
    allowed = np.ones(m, bool) if allowed is None else np.asarray(allowed, bool)
    if len(counts) != m or len(allowed) != m:
        raise ShapeMismatch(f"{m} combinations, but {len(counts)} counts and {len(allowed)} marks")
    _, region = np.unique(frequencies.region_of(), return_inverse=True)
    records = np.bincount(region, frequencies.counts)
    small = int(((records > 0) & (records < k)).sum())
    if small:
        raise TooFewRecords(f"{small} regions have fewer than k = {k} records; merge or suppress them")
    closed = int(((records > 0) & (np.bincount(region, allowed) == 0)).sum())
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
