"""The schedule of the local search: cool from hot to cold while the wall at the maxima rises.

All of it is relative to what a transfer costs where the search begins, so that a file of 200 records
and one of a million need no settings of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdc.nominal.control_tables import ControlTables
from sdc.nominal.frequency import FrequencyVector
from sdc.nominal.frequency_search.local_search import anneal, sample_changes
from sdc.nominal.frequency_search.objective import Objective
from sdc.nominal.frequency_search.search_state import SearchState
from sdc.nominal.neighbours import similarity_orders
from sdc.stop import Deadline, StoppedBy

#: Cost of a squared error above the maximum, as a multiple of the first temperature: at first, and
#: when the search is cold.
SOFT, _STEEP = 0.03, 1000.0
#: The same at the end, in units of the objective: nothing that exceeds a maximum is worth it.
_WALL = 1e6
#: First temperature, as a multiple of the median cost of a transfer at the start; last, of the first.
_HOT, _COLD = 0.25, 0.005
#: Share of the moves spent after cooling on descent against the wall.
_DESCENT = 0.1
#: Moves per movable combination that one run can use; small files run several times instead.
_USEFUL, _MOST_RUNS = 20_000, 8
#: Moves between two looks at the clock.
_STRETCH = 1_000_000
_SAMPLE = 20_000


@dataclass(frozen=True)
class Annealing:
    """Runs from one start; the best vector met at the end of a run wins, the start included.

    Attributes
    ----------
    state : SearchState, working copy
    start : (m,) counts every run begins with
    movable : positions that moves start from
    """

    state: SearchState
    start: np.ndarray
    frequencies: FrequencyVector
    tables: ControlTables
    objective: Objective
    movable: np.ndarray
    orders: np.ndarray
    places: np.ndarray
    stream: np.ndarray

    @classmethod
    def of(
        cls,
        state: SearchState,
        frequencies: FrequencyVector,
        tables: ControlTables,
        objective: Objective,
        movable: np.ndarray,
        stream: np.ndarray,
    ) -> Annealing:
        """Annealing from where the state is."""
        orders, places = similarity_orders(frequencies)
        start = state.counts.copy()
        return cls(state, start, frequencies, tables, objective, movable, orders, places, stream)

    def run(self, moves: int, deadline: Deadline, firm: bool = False) -> tuple[np.ndarray, int, StoppedBy]:
        """Best counts, moves tried, and what ended the search; behind a `firm` wall from the first move."""
        sample = self._sample()
        if len(sample) == 0:
            return self.start, 0, "work"
        hot = max(_HOT * float(np.median(sample)), 1e-9)
        runs = min(max(moves // (_USEFUL * len(self.movable)), 1), _MOST_RUNS)
        best, least, work = self.start, self._value(self.start), 0
        for _ in range(runs):
            self.state.counts[:] = self.start
            self.state.errors[:] = self.tables.errors(self.start)
            tried, in_time = self._cool(hot, moves // runs, deadline, firm)
            work += tried
            value = self._value(self.state.counts)
            if value < least:
                best, least = self.state.counts.copy(), value
            if not in_time:
                return best, work, "time"
        return best, work, "work"

    def _sample(self) -> np.ndarray:
        parts = self.movable, self.orders, self.places, self.stream
        return sample_changes(self.state, *parts, 0.0, _SAMPLE)

    def _value(self, counts: np.ndarray) -> float:
        return self.objective.value(self.frequencies, self.tables, counts, _WALL)

    def _cool(self, hot: float, moves: int, deadline: Deadline, firm: bool) -> tuple[int, bool]:
        """One run: moves tried, and whether the deadline let it end."""
        parts = self.movable, self.orders, self.places, self.stream
        share = 1 / max(moves, 1)  # without moves nothing cools
        cooling, rising = _COLD**share, 1.0 if firm else (_STEEP * _COLD / SOFT) ** share
        done = 0
        while done < moves:
            if deadline.passed:
                return done, False
            stretch = min(_STRETCH, moves - done)
            temperature, excess = hot * cooling**done, _WALL if firm else hot * SOFT * rising**done
            anneal(self.state, *parts, stretch, temperature, cooling, excess, rising)
            done += stretch
        descent = int(_DESCENT * moves)
        anneal(self.state, *parts, descent, 0.0, 1.0, _WALL, 1.0)
        return done + descent, True
