"""A part of a file: its search, one stage of the schedule at a time, on what it sees of the others' errors.

What a part changes in the cells it shares is the sum of what all parts do there. So before every stage a part
is told which errors to take its shared cells to have: its portion of the errors of the whole file.
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
from microguard.sdc.nominal.frequency_search.search import begun_anew
from microguard.sdc.nominal.frequency_search.search_state import new_state
from microguard.sdc.nominal.neighbours import similarity_orders, sorted_combinations
from microguard.sdc.nominal.region_levels import RegionLevels
from microguard.sdc.stop import Deadline

#: Moves tried, per combination below k: what one process tries on half a million of them.
_MOVES: Mapping[Effort, int] = {"fast": 10, "standard": 300, "thorough": 1_500, "exact": 1_500}
#: Stages that a search cools in, and that it descends in when it is cold.
COOLING, DESCENTS = 4, 2
#: An error of shared cells weighs as much as the number of parts that move at a time, to this power: what all
#: of them leave alike adds up, what each leaves for itself cancels.
_CROWD = 0.25

Kind = Literal["settle", "cool", "descend", "mend"]


@dataclass(frozen=True)
class PartitionRequest:
    """What is asked of every part.

    Attributes
    ----------
    k : int
    tables : tuple of tuples of names
    levels : RegionLevels or None
    effort, seed, max_absolute_error, kept_dimension : as of `protect_frequencies`
    moves : int or None
        Moves tried for each combination below k, instead of what the effort gives.
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
    """One of the stages that every part goes through.

    Attributes
    ----------
    number : int, from 0
    kind : "settle", "cool", "descend" or "mend"
    step : which of the stages of its kind
    """

    number: int
    kind: Kind
    step: int = 0


SETTLE = Stage(0, "settle")
SEARCHING = (
    *(Stage(1 + step, "cool", step) for step in range(COOLING)),
    *(Stage(1 + COOLING + step, "descend", step) for step in range(DESCENTS)),
)
#: Stages that every part goes through.
STAGES = 1 + len(SEARCHING)


@dataclass(frozen=True)
class VisibleErrors:
    """What a part sees of the whole file, in the cells it shares.

    Attributes
    ----------
    original : (shared,) int64, records of the whole file
    errors : (shared,) int64, errors that its cells are taken to have
    moving : int, parts that move at a time
    """

    original: np.ndarray
    errors: np.ndarray
    moving: int


@dataclass(frozen=True)
class Standing:
    """How far a part is: its counts, and the temperature that its search began with."""

    counts: np.ndarray
    hot: float = 0.0


@dataclass(frozen=True)
class Part:
    """A part of a file: whole regions, in the order of the file.

    Attributes
    ----------
    number : int, its place among the parts
    frequencies : FrequencyVector
    tables : ControlTables
        Its cells and what it has in them, those by region among them.
    orders, places : of `similarity_orders`
    """

    number: int
    frequencies: FrequencyVector
    tables: ControlTables
    orders: np.ndarray
    places: np.ndarray

    @classmethod
    def of(cls, number: int, frequencies: FrequencyVector, asked: PartitionRequest) -> Part:
        """The part, indexed.

        Raises
        ------
        TooFewRecords
            A region with fewer than k records.
        """
        check_regions(frequencies, asked.k)
        tables = ControlTables.of(frequencies, asked.tables, levels=asked.levels)
        return cls(number, frequencies, tables, *similarity_orders(frequencies))

    @property
    def shared(self) -> np.ndarray:
        """Cells of tables without a region, (cells,) bool."""
        return np.asarray(self.tables.level == 0)

    def errors(self, counts: np.ndarray) -> np.ndarray:
        """What these counts change in the cells it shares, (shared,) int64."""
        return self.tables.errors(counts)[self.shared]

    def chi2_by_region(self, counts: np.ndarray) -> float:
        """Chi-square of the tables by region, which are of this part alone."""
        squares = self.tables.errors(counts) ** 2 * self.tables.reciprocals
        return float(squares[~self.shared].sum())

    def advanced(
        self, asked: PartitionRequest, stage: Stage, seen: VisibleErrors, standing: Standing
    ) -> tuple[Standing, int]:
        """One stage further: where the part stands then, and moves tried."""
        search = self._search(asked, stage, seen, standing)
        if stage.kind == "settle":
            settle(search.state, sorted_combinations(self.frequencies), SOFT)
            return Standing(search.state.counts), 0
        each = _MOVES[asked.effort] if asked.moves is None else asked.moves
        moves, never = each * len(search.movable), Deadline.after(None)
        if moves == 0:
            return standing, 0
        if stage.kind == "mend":
            counts, tried, _ = begun_anew(search, standing.counts, moves, never)
            return replace(standing, counts=counts), tried
        hot = standing.hot or search.first_temperature()
        if hot == 0:
            return standing, 0
        if stage.kind == "cool":
            begin, end = (moves * step // COOLING for step in (stage.step, stage.step + 1))
            tried, _ = search.cool(hot, moves, never, begin=begin, end=end)
        else:
            tried = search.descend(int(DESCENT * moves) // DESCENTS)
        return Standing(search.state.counts, hot), tried

    def _search(
        self, asked: PartitionRequest, stage: Stage, seen: VisibleErrors, standing: Standing
    ) -> Annealing:
        """The search where the part stands, with the errors that it sees."""
        frequencies, shared, k = self.frequencies, self.shared, asked.k
        original, elsewhere = self.tables.original.copy(), np.zeros(len(shared), np.int64)
        original[shared] = seen.original
        elsewhere[shared] = seen.original + seen.errors - self.tables.totals(standing.counts)[shared]
        tables = self.tables.beside(original, elsewhere)
        objective = Objective.of(
            frequencies, tables, k, SearchParameters(), asked.max_absolute_error, asked.kept_dimension
        )
        weight = objective.cell_weight * np.where(shared, seen.moving**_CROWD, 1.0)
        objective = replace(objective, cell_weight=weight)
        anywhere = np.ones(len(frequencies), bool)
        state = new_state(frequencies, standing.counts, k, tables, objective, anywhere)
        stream = new_stream(asked.seed, self.number, stage.number)
        movable, orders = np.flatnonzero(frequencies.at_risk(k)), (self.orders, self.places)
        start = state.counts.copy()
        return Annealing(state, start, frequencies, tables, objective, movable, *orders, stream)
