"""Parts of a file protected together: all search at once, and no two correct the same error.

Each part anneals by itself; its schedule is cut in stages, and before each stage the errors of the cells that
all share are added up. The parts then move in turns, a few at a time, and every error of the whole file is
dealt out, record by record, to those whose turn it is: what they see adds up to what there is. That is one
process's search with errors that are a turn old, and it depends on nothing but the parts.

An error that no part finds worth its price would stay in all of them, so what stays is remembered, and dealt
out beside the error itself (as the multipliers of Boyd et al. 2011, section 7.3, do).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from microguard.sdc.nominal.frequency_search.objective import maximum_of
from microguard.sdc.nominal.partitions.cell_index import CellIndex
from microguard.sdc.nominal.partitions.part import SEARCHING, SETTLE, PartitionRequest, Stage

#: Combinations of a part, about: it is indexed and searched in about 100 MB.
PART = 125_000
#: Turns of a stage: in each move the parts whose number leaves the same remainder.
TURNS = 8
#: Of the errors that stay, what is remembered at each turn, and what is forgotten.
_REMEMBERED, _LEFT = 0.5, 0.7
#: Rounds in which parts one by one mend what exceeds a maximum, or is empty and should not be.
_MENDING = 2


@dataclass(frozen=True)
class SharedState:
    """What a part holds of the shared cells: their numbers in the whole file, and its original records."""

    places: np.ndarray
    records: np.ndarray


class Parts(Protocol):
    """The parts of a file, wherever they lie."""

    @property
    def index(self) -> CellIndex:
        """The cells that they share."""

    def __len__(self) -> int: ...

    def held(self, part: int) -> SharedState:
        """What a part holds of the shared cells."""

    def advance(self, stage: Stage, portions: Mapping[int, np.ndarray]) -> int:
        """Take parts through a stage, each with the errors it is to see; return the moves they tried."""

    def change(self, part: int) -> np.ndarray:
        """What the last stage of a part changed in its shared cells, (held,) int64."""


@dataclass(frozen=True)
class Reconciled:
    """Errors of the shared cells, (cells,) int64, when all parts are protected, and moves tried."""

    errors: np.ndarray
    work: int


def cut_regions(combinations: np.ndarray, most: int = PART) -> np.ndarray:
    """Part of each region, (regions,): consecutive regions of together at most so many combinations.

    A region that has more is a part of its own.
    """
    part, inside, parts = 0, 0, []
    for number in combinations.tolist():
        if inside and inside + number > most:
            part, inside = part + 1, 0
        inside += number
        parts.append(part)
    return np.array(parts, np.int64)


def reconcile(parts: Parts, asked: PartitionRequest) -> Reconciled:
    """Take all parts through the schedule, until every count is 0 or at least k."""
    everybody = range(len(parts))
    errors = np.zeros(len(parts.index), np.int64)
    nothing = {part: np.zeros(len(parts.held(part).places), np.int64) for part in everybody}
    work = _advance(parts, SETTLE, nothing, errors)
    staying = np.zeros(len(errors))
    for stage in SEARCHING:
        for turn in range(TURNS):
            moving = everybody[turn::TURNS]
            staying = _LEFT * staying + _REMEMBERED * errors * len(moving) / len(parts)
            seen = errors + np.rint(staying).astype(np.int64)
            work += _advance(parts, stage, portions(parts, moving, seen), errors)
    for step in range(_MENDING):
        work += _mend(parts, Stage(len(SEARCHING) + 1 + step, "mend", step), asked, errors)
    return Reconciled(errors, work)


def portions(parts: Parts, moving: Sequence[int], errors: np.ndarray) -> dict[int, np.ndarray]:
    """The errors that each moving part is to see: whole records, by what it holds, that add up to all.

    An error of a cell that none of them holds is dealt out to nobody.
    """
    records = np.zeros(len(errors), np.int64)
    for _, held in _held(parts, moving):
        records[held.places] += held.records
    # where a cell's records are counted from: else the same part would see every error of a single record
    phase = np.arange(len(errors)) * 2_654_435_761 % np.maximum(records, 1)
    before, dealt = np.zeros(len(errors), np.int64), {}
    for part, held in _held(parts, moving):
        at, of_cell = held.places, np.maximum(records[held.places], 1)
        after = before[at] + held.records
        ends = [(errors[at] * number + phase[at]) // of_cell for number in (before[at], after)]
        dealt[part] = ends[1] - ends[0]
        before[at] = after
    return dealt


def _held(parts: Parts, moving: Sequence[int]) -> Iterator[tuple[int, SharedState]]:
    return ((part, parts.held(part)) for part in moving)


def _advance(parts: Parts, stage: Stage, dealt: Mapping[int, np.ndarray], errors: np.ndarray) -> int:
    """Take parts through a stage and add up what they changed; return the moves tried."""
    work = parts.advance(stage, dealt) if dealt else 0
    for part in dealt:
        errors[parts.held(part).places] += parts.change(part)
    return work


def _mend(parts: Parts, stage: Stage, asked: PartitionRequest, errors: np.ndarray) -> int:
    """One part after the other, on the very errors, as long as a shared cell is not as it was asked."""
    work = 0
    for part in range(len(parts)):
        amiss = _amiss(parts.index, asked, errors)
        if not amiss.any():
            break
        if amiss[parts.held(part).places].any():
            work += _advance(parts, stage, portions(parts, [part], errors), errors)
    return work


def _amiss(index: CellIndex, asked: PartitionRequest, errors: np.ndarray) -> np.ndarray:
    """Cells beyond their maximum, or empty where they should not be, (cells,) bool."""
    maxima = np.array([maximum_of(names, len(names), asked.max_absolute_error) for names in index.tables])
    kept = (index.original >= asked.k) & (index.dimension <= asked.kept_dimension)
    beyond = np.abs(errors) > maxima[index.table] if len(maxima) else np.zeros(0, bool)
    return np.asarray(beyond | (kept & (errors == -index.original)))
