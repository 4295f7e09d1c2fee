"""The working frequency vector with its live errors, and what changing it costs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from microguard.sdc.kernels.compile import embedded
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector
from microguard.sdc.nominal.frequency_search.objective import Objective, cell_cost


class SearchState(NamedTuple):
    """What the kernels read and write; `counts` and `errors` belong together at all times.

    Attributes
    ----------
    counts, original : (m,) int64, current and original frequencies
    k : smallest occupied frequency
    cells : (m, T) int32
    errors : (cells,) int64, protected minus original
    cell_weight, table_cost, deviation_weight, max_deviation, kept : of the objective
    allowed : (m,) bool, False for structural zeros
    region : (m,) int64, rank of each combination's region
    stretch : (regions + 1,) int64, where each region's combinations begin
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
    """State at these counts."""
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
    """Cost of the combination's own distance from its original frequency."""
    deviation = state.counts[i] - state.original[i]
    return state.deviation_weight[i] * change * (2 * deviation + change)


@embedded
def change_cost(state: SearchState, i: int, change: int, excess: float) -> float:
    """Cost of changing combination i by so many records."""
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
    """Cost of moving records between two combinations; cells they share do not change."""
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
    """Change a combination's frequency and the errors of its cells."""
    cells, errors = state.cells, state.errors
    state.counts[i] += change
    for t in range(cells.shape[1]):
        errors[cells[i, t]] += change


@embedded
def may_become(state: SearchState, i: int, count: int) -> bool:
    """Whether combination i may have this many records: 0 or k and more, near enough the original."""
    if not state.allowed[i]:
        return count == 0
    return (count == 0 or count >= state.k) and abs(count - state.original[i]) <= state.max_deviation
