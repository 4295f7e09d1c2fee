"""Local search of one partition: run one stage of the schedule given the other partitions' table errors.

The error of a shared cell is the sum of the errors of all partitions. Before every stage, each partition
receives its portion of the errors of the whole file, and treats it as the error of its shared cells.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from microguard.sdc.algorithms.algorithm import Effort
from microguard.sdc.algorithms.nominal import ByTable, SearchParameters
from microguard.sdc.kernels.random import new_stream
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector, check_regions
from microguard.sdc.nominal.frequency_search.annealing import DESCENT, SOFT, Annealing
from microguard.sdc.nominal.frequency_search.greedy import settle
from microguard.sdc.nominal.frequency_search.objective import Objective
from microguard.sdc.nominal.frequency_search.search import restart_search
from microguard.sdc.nominal.frequency_search.search_state import new_state
from microguard.sdc.nominal.neighbours import similarity_orders, sorted_combinations
from microguard.sdc.nominal.region_levels import RegionLevels
from microguard.sdc.stop import Deadline

#: Number of moves per key combination below k. It equals the number that one process tries for half a million
#: combinations.
_MOVES: Mapping[Effort, int] = {"fast": 10, "standard": 300, "thorough": 1_500, "exact": 1_500}
#: Number of cooling stages, and of subsequent descent stages.
COOLING, DESCENTS = 4, 2
#: Exponent of the number of concurrent partitions in the weight of errors of shared cells. Systematic errors
#: of these partitions add up, while independent errors partly cancel.
_CROWD = 0.25

Kind = Literal["greedy", "cool", "descend", "repair"]


@dataclass(frozen=True)
class PartitionRequest:
    """Parameters that are equal for all partitions.

    Attributes
    ----------
    k : int
    tables : tuple of tuples of names
        Control tables.
    levels : RegionLevels or None
    effort, seed, max_absolute_error, kept_dimension
        See `protect_frequencies`.
    moves : int or None
        Number of moves per key combination below k; by default the effort determines it.
    """

    k: int
    tables: tuple[tuple[Hashable, ...], ...]
    levels: RegionLevels | None = None
    effort: Effort = "standard"
    seed: int = 0
    max_absolute_error: ByTable | None = None
    kept_dimension: int = 0
    moves: int | None = None


@dataclass(frozen=True)
class Stage:
    """One stage of the annealing schedule.

    Attributes
    ----------
    number : int
        Number of the stage, from 0.
    kind : "greedy", "cool", "descend" or "repair"
        Greedy repair of counts below k, cooling of the annealing, descent, or repair of violated limits.
    step : int
        Number among the stages of its kind, from 0.
    """

    number: int
    kind: Kind
    step: int = 0


GREEDY = Stage(0, "greedy")
SEARCHING = (
    *(Stage(1 + step, "cool", step) for step in range(COOLING)),
    *(Stage(1 + COOLING + step, "descend", step) for step in range(DESCENTS)),
)
#: Number of stages that every partition runs, without repair stages.
STAGES = 1 + len(SEARCHING)


@dataclass(frozen=True)
class VisibleErrors:
    """Errors of a partition's shared cells in the whole file, as far as the partition receives them.

    Attributes
    ----------
    original : (shared,) int64 array
        Original counts of the whole file.
    errors : (shared,) int64 array
        Portion of the errors that the partition treats as the errors of its cells.
    moving : int
        Number of partitions that run concurrently.
    """

    original: np.ndarray
    errors: np.ndarray
    moving: int


@dataclass(frozen=True)
class Standing:
    """State of a partition between two stages: the counts, and the initial temperature of the search."""

    counts: np.ndarray
    hot: float = 0.0


@dataclass(frozen=True)
class Part:
    """Partition of a file: whole, consecutive regions.

    Attributes
    ----------
    number : int
        Number of the partition, from 0.
    frequencies : FrequencyVector
        Key combinations of the partition.
    tables : ControlTables
        Cells of the partition, including those of tables by region.
    orders, places : (q, m) int32 arrays
        See `similarity_orders`.
    """

    number: int
    frequencies: FrequencyVector
    tables: ControlTables
    orders: np.ndarray
    places: np.ndarray

    @classmethod
    def of(cls, number: int, frequencies: FrequencyVector, request: PartitionRequest) -> Part:
        """Build a partition with its control tables and sort orders of key combinations.

        Raises
        ------
        TooFewRecords
            If a region has fewer than k records.
        """
        check_regions(frequencies, request.k)
        tables = ControlTables.of(frequencies, request.tables, levels=request.levels)
        return cls(number, frequencies, tables, *similarity_orders(frequencies))

    @property
    def shared(self) -> np.ndarray:
        """Return whether each cell belongs to a table without a region, (cells,) bool."""
        return np.asarray(self.tables.level == 0)

    def errors(self, counts: np.ndarray) -> np.ndarray:
        """Return the errors of the shared cells for these counts, (shared,) int64."""
        return self.tables.errors(counts)[self.shared]

    def chi2_by_region(self, counts: np.ndarray) -> float:
        """Return the chi-square of the tables by region; their cells belong to this partition only."""
        squares = self.tables.errors(counts) ** 2 * self.tables.reciprocals
        return float(squares[~self.shared].sum())

    def run_stage(
        self, request: PartitionRequest, stage: Stage, visible: VisibleErrors, progress: Standing
    ) -> tuple[Standing, int]:
        """Run one stage of the schedule; return the new state and the number of moves tried."""
        search = self._search(request, stage, visible, progress)
        if stage.kind == "greedy":
            settle(search.state, sorted_combinations(self.frequencies), SOFT)
            return Standing(search.state.counts), 0
        each = _MOVES[request.effort] if request.moves is None else request.moves
        moves, never = each * len(search.movable), Deadline.after(None)
        if moves == 0:
            return progress, 0
        if stage.kind == "repair":
            counts, tried, _ = restart_search(search, progress.counts, moves, never)
            return replace(progress, counts=counts), tried
        hot = progress.hot or search.first_temperature()
        if hot == 0:
            return progress, 0
        if stage.kind == "cool":
            begin, end = (moves * step // COOLING for step in (stage.step, stage.step + 1))
            tried, _ = search.cool(hot, moves, never, begin=begin, end=end)
        else:
            tried = search.descend(int(DESCENT * moves) // DESCENTS)
        return Standing(search.state.counts, hot), tried

    def _search(
        self, request: PartitionRequest, stage: Stage, visible: VisibleErrors, progress: Standing
    ) -> Annealing:
        """Build the search for the current state and the visible errors."""
        frequencies, shared, k = self.frequencies, self.shared, request.k
        original, elsewhere = self.tables.original.copy(), np.zeros(len(shared), np.int64)
        original[shared] = visible.original
        elsewhere[shared] = visible.original + visible.errors - self.tables.totals(progress.counts)[shared]
        tables = self.tables.beside(original, elsewhere)
        objective = Objective.of(
            frequencies, tables, k, SearchParameters(), request.max_absolute_error, request.kept_dimension
        )
        weight = objective.cell_weight * np.where(shared, visible.moving**_CROWD, 1.0)
        objective = replace(objective, cell_weight=weight)
        anywhere = np.ones(len(frequencies), bool)
        state = new_state(frequencies, progress.counts, k, tables, objective, anywhere)
        stream = new_stream(request.seed, self.number, stage.number)
        movable, orders = np.flatnonzero(frequencies.at_risk(k)), (self.orders, self.places)
        start = state.counts.copy()
        return Annealing(state, start, frequencies, tables, objective, movable, *orders, stream)
