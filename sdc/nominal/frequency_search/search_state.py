"""Mutable frequency vector of the search, its current table errors, and the costs of changes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import embedded
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector
from microguard.sdc.nominal.frequency_search.objective import Objective, cell_cost


class SearchState(NamedTuple):
    """Arrays of the search; `errors` always corresponds to `counts`.

    Attributes
    ----------
    counts, original : (m,) int64 arrays
        Current and original counts.
    k : int
        Smallest positive count.
    cells : (m, T) int32 array
        Cell of each key combination in each table.
    errors : (cells,) int64 array
        Current minus original count of each cell.
    cell_weight, table_cost, deviation_weight, max_deviation, kept
        See `Objective`.
    allowed : (m,) bool array
        False for structural zeros.
    region : (m,) int64 array
        Rank of each combination's region.
    stretch : (regions + 1,) int64 array
        First combination of each region.
    """

    counts: np.ndarray
    original: np.ndarray
    k: int
    cells: np.ndarray
    errors: np.ndarray
    cell_weight: np.ndarray
    table_cost: np.ndarray
    deviation_weight: np.ndarray
    max_deviation: int
    kept: np.ndarray
    allowed: np.ndarray
    region: np.ndarray
    stretch: np.ndarray


def new_state(
    frequencies: FrequencyVector,
    counts: np.ndarray,
    k: int,
    tables: ControlTables,
    objective: Objective,
    allowed: np.ndarray,
) -> SearchState:
    """Build the search state for the given counts."""
    _, stretch, region = np.unique(frequencies.region_of(), return_index=True, return_inverse=True)
    return SearchState(
        counts=np.array(counts, np.int64),
        original=np.asarray(frequencies.counts, np.int64),
        k=int(k),
        cells=tables.cells,
        errors=tables.errors(counts),
        cell_weight=objective.cell_weight,
        table_cost=objective.table_cost,
        deviation_weight=objective.deviation_weight,
        max_deviation=int(objective.max_deviation),
        kept=objective.kept,
        allowed=allowed,
        region=region.astype(np.int64),
        stretch=np.append(stretch, len(frequencies)).astype(np.int64),
    )


@embedded
def deviation_cost(state: SearchState, i: int, change: int) -> float:
    """Return the change of the deviation cost if combination i changes by `change` records."""
    deviation = state.counts[i] - state.original[i]
    return state.deviation_weight[i] * change * (2 * deviation + change)


@embedded
def change_cost(state: SearchState, i: int, change: int, excess: float) -> float:
    """Return the change of the objective if combination i changes by `change` records."""
    cells, errors, cell_weight, table_cost = state.cells, state.errors, state.cell_weight, state.table_cost
    kept, keeping = state.kept, len(state.kept) > 0
    total = deviation_cost(state, i, change)
    for t in range(cells.shape[1]):
        cell = cells[i, t]
        error, weight = errors[cell], cell_weight[cell]
        absolute, tolerance, bound = table_cost[t, 0], table_cost[t, 1], table_cost[t, 2]
        full = kept[cell] if keeping else 0
        total += cell_cost(error + change, weight, absolute, tolerance, bound, full, excess)
        total -= cell_cost(error, weight, absolute, tolerance, bound, full, excess)
    return total


@embedded
def transfer_cost(state: SearchState, origin: int, target: int, records: int, excess: float) -> float:
    """Return the change of the objective if records move from one combination to another."""
    cells, errors, cell_weight, table_cost = state.cells, state.errors, state.cell_weight, state.table_cost
    kept, keeping = state.kept, len(state.kept) > 0
    total = deviation_cost(state, origin, -records) + deviation_cost(state, target, records)
    for t in range(cells.shape[1]):
        loser, winner = cells[origin, t], cells[target, t]
        if loser != winner:
            absolute, tolerance, bound = table_cost[t, 0], table_cost[t, 1], table_cost[t, 2]
            error, weight, full = errors[loser], cell_weight[loser], kept[loser] if keeping else 0
            total += cell_cost(error - records, weight, absolute, tolerance, bound, full, excess)
            total -= cell_cost(error, weight, absolute, tolerance, bound, full, excess)
            error, weight, full = errors[winner], cell_weight[winner], kept[winner] if keeping else 0
            total += cell_cost(error + records, weight, absolute, tolerance, bound, full, excess)
            total -= cell_cost(error, weight, absolute, tolerance, bound, full, excess)
    return total


@embedded
def apply_change(state: SearchState, i: int, change: int) -> None:
    """Change the count of a combination and the errors of its cells."""
    cells, errors = state.cells, state.errors
    state.counts[i] += change
    for t in range(cells.shape[1]):
        errors[cells[i, t]] += change


@embedded
def may_become(state: SearchState, i: int, count: int) -> bool:
    """Return whether combination i may have this count: 0 or at least k, and within the maximum deviation."""
    if not state.allowed[i]:
        return count == 0
    return (count == 0 or count >= state.k) and abs(count - state.original[i]) <= state.max_deviation
