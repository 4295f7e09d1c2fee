"""Annealing schedule of the local search: the temperature falls while the penalty for exceeded maximum errors
rises.

All settings are relative to the cost of a transfer at the start, so that they apply to files of 200 and of a
million records.
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

#: Penalty per squared excess over the maximum, as a multiple of the temperature, at the start and at the end;
#: halfway, both are equal. A high penalty at the start blocks paths to better counts: on Adult with SAFE's
#: maxima, 0.03 at the start costs 1 to 4 % more chi-square.
SOFT, _STEEP = 0.001, 1000.0
#: Final penalty in units of the objective; it exceeds any possible gain.
_WALL = 1e6
#: Maximum number of additional runs while an error exceeds its maximum.
_FURTHER_RUNS = 1
#: Initial temperature as a multiple of the median cost of a transfer, and final temperature as a multiple of
#: the initial one.
_HOT, _COLD = 0.25, 0.005
#: Factor of the initial temperature in every second run of a small file. If a region has two or three
#: clusters, few moves are possible, and the best vector can be reached only through worse ones.
_HOTTER = 8.0
#: Number of moves of the descent that follows cooling, as a share of the moves of a run.
DESCENT = 0.1
#: Maximum useful number of moves in one run, per movable combination and per pair of movable combinations
#: (for very small files); and maximum number of runs. Small files have several runs.
_USEFUL, _USEFUL_OF_PAIR, _MOST_RUNS = 20_000, 500, 8
#: Number of moves between two checks of the deadline.
_STRETCH = 1_000_000
_SAMPLE = 20_000


@dataclass(frozen=True)
class Annealing:
    """Annealing runs from one start. The result is the best among the start and the final vectors of all
    runs.

    Attributes
    ----------
    state : SearchState
        Working copy.
    start : (m,) int64 array
        Initial counts of every run.
    frequencies, tables, objective
        Original counts, control tables and objective.
    movable : int array
        Positions of the key combinations from which moves start.
    orders, places : (q, m) int32 arrays
        See `similarity_orders`.
    stream : (1,) uint64 array
        State of the random numbers.
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
    def from_state(
        cls,
        state: SearchState,
        frequencies: FrequencyVector,
        tables: ControlTables,
        objective: Objective,
        movable: np.ndarray,
        stream: np.ndarray,
    ) -> Annealing:
        """Build an annealing that starts from the current counts of the state."""
        orders, places = similarity_orders(frequencies)
        start = state.counts.copy()
        return cls(state, start, frequencies, tables, objective, movable, orders, places, stream)

    def at(self, counts: np.ndarray, objective: Objective) -> Annealing:
        """Return the same annealing with other initial counts and another objective."""
        allowed, tables = self.state.allowed, self.tables
        state = new_state(self.frequencies, counts, self.state.k, tables, objective, allowed)
        return replace(self, state=state, start=state.counts.copy(), objective=objective)

    def run(self, moves: int, deadline: Deadline, firm: bool = False) -> tuple[np.ndarray, int, StoppedBy]:
        """Run the annealing; return the best counts, the number of moves tried and the reason for stopping.

        If `firm` is true, the final penalty applies from the first move on.
        """
        hot = self.first_temperature()
        if hot == 0:
            return self.start, 0, "work"
        movable = len(self.movable)
        useful = movable * min(_USEFUL, _USEFUL_OF_PAIR * movable)
        runs = min(max(moves // useful, 1), _MOST_RUNS)
        best, least, work = self.start, self._value(self.start), 0
        for number in range(runs + _FURTHER_RUNS):
            if number >= runs and not self.objective.exceeded(self.tables, best):
                break
            self.state.counts[:] = self.start
            self.state.errors[:] = self.tables.errors(self.start)
            first = hot * _HOTTER if number % 2 else hot
            tried, in_time = self.cool(first, moves // runs, deadline, firm=firm)
            work += tried + (self.descend(int(DESCENT * (moves // runs))) if in_time else 0)
            value = self._value(self.state.counts)
            if value < least:
                best, least = self.state.counts.copy(), value
            if not in_time:
                return best, work, "time"
        return best, work, "work"

    def first_temperature(self) -> float:
        """Return the initial temperature for the current state; 0 if no move is possible."""
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
        """Run the moves `begin` to `end` - 1 of `moves`; return the number of moves tried, and whether the
        deadline was met.
        """
        share = 1 / max(moves, 1)
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
        """Try moves at temperature zero with the final penalty; return the number of moves tried."""
        anneal(self.state, *self._parts, moves, 0.0, 1.0, _WALL, 1.0)
        return moves

    @property
    def _parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.movable, self.orders, self.places, self.stream

    def _value(self, counts: np.ndarray) -> float:
        return self.objective.value(self.frequencies, self.tables, counts, _WALL)
