"""The schedule of the local search: cool from hot to cold while the wall at the maxima rises.

All of it is relative to what a transfer costs where the search begins, so that a file of 200 records
and one of a million need no settings of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector
from microguard.sdc.nominal.frequency_search.local_search import anneal, sample_changes
from microguard.sdc.nominal.frequency_search.objective import Objective
from microguard.sdc.nominal.frequency_search.search_state import SearchState, new_state
from microguard.sdc.nominal.neighbours import similarity_orders
from microguard.sdc.stop import Deadline, StoppedBy

#: Cost of a squared error above the maximum, as a multiple of the temperature: at first, and when the search
#: is cold. The wall is as high as the temperature halfway: one that stands earlier closes ways to better
#: counts (on Adult with SAFE's maxima 0.03 at first costs 1 to 4 % more chi-square).
SOFT, _STEEP = 0.001, 1000.0
#: The same at the end, in units of the objective: nothing that exceeds a maximum is worth it.
_WALL = 1e6
#: Further runs, one by one, as long as a maximum is exceeded at the end of each.
_FURTHER_RUNS = 1
#: First temperature, as a multiple of the median cost of a transfer at the start; last, of the first.
_HOT, _COLD = 0.25, 0.005
#: Share of the moves spent after cooling on descent against the wall.
DESCENT = 0.1
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

    def at(self, counts: np.ndarray, objective: Objective) -> Annealing:
        """The same search from other counts, by another objective."""
        allowed, tables = self.state.allowed, self.tables
        state = new_state(self.frequencies, counts, self.state.k, tables, objective, allowed)
        return replace(self, state=state, start=state.counts.copy(), objective=objective)

    def run(self, moves: int, deadline: Deadline, firm: bool = False) -> tuple[np.ndarray, int, StoppedBy]:
        """Best counts, moves tried, and what ended the search; behind a `firm` wall from the first move."""
        hot = self.first_temperature()
        if hot == 0:
            return self.start, 0, "work"
        runs = min(max(moves // (_USEFUL * len(self.movable)), 1), _MOST_RUNS)
        best, least, work = self.start, self._value(self.start), 0
        for number in range(runs + _FURTHER_RUNS):
            if number >= runs and not self.objective.exceeded(self.tables, best):
                break
            self.state.counts[:] = self.start
            self.state.errors[:] = self.tables.errors(self.start)
            tried, in_time = self.cool(hot, moves // runs, deadline, firm=firm)
            work += tried + (self.descend(int(DESCENT * (moves // runs))) if in_time else 0)
            value = self._value(self.state.counts)
            if value < least:
                best, least = self.state.counts.copy(), value
            if not in_time:
                return best, work, "time"
        return best, work, "work"

    def first_temperature(self) -> float:
        """What the search begins with from where the state is; 0 where nothing can move."""
        sample = sample_changes(self.state, *self._parts, 0.0, _SAMPLE)
        return max(_HOT * float(np.median(sample)), 1e-9) if len(sample) else 0.0

    def cool(
        self,
        hot: float,
        moves: int,
        deadline: Deadline,
        *,
        firm: bool = False,
        begin: int = 0,
        end: int | None = None,
    ) -> tuple[int, bool]:
        """The moves from `begin` to before `end` of a run of so many: those tried, and whether in time."""
        share = 1 / max(moves, 1)  # without moves nothing cools
        cooling, rising = _COLD**share, 1.0 if firm else (_STEEP * _COLD / SOFT) ** share
        done, end = begin, moves if end is None else end
        while done < end:
            if deadline.passed:
                return done - begin, False
            stretch = min(_STRETCH, end - done)
            temperature, excess = hot * cooling**done, _WALL if firm else hot * SOFT * rising**done
            anneal(self.state, *self._parts, stretch, temperature, cooling, excess, rising)
            done += stretch
        return done - begin, True

    def descend(self, moves: int) -> int:
        """Moves tried, of which only those that cost nothing are made, against the wall."""
        anneal(self.state, *self._parts, moves, 0.0, 1.0, _WALL, 1.0)
        return moves

    @property
    def _parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.movable, self.orders, self.places, self.stream

    def _value(self, counts: np.ndarray) -> float:
        return self.objective.value(self.frequencies, self.tables, counts, _WALL)
