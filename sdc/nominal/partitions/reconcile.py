"""Concurrent protection of a file's partitions, such that no two partitions correct the same table error.

Each partition runs its own annealing, divided into stages. In each stage the partitions run in turns, a few
at a time. Before each turn, the errors of all shared cells are added up and allocated, in whole records, to
the partitions of that turn. The allocated portions sum to the total error. The result equals that of a single
search with errors that are one turn old, and depends only on how the file is partitioned.

An error that no partition reduces would remain in all turns. Remaining errors are therefore accumulated, and
the accumulated error is allocated in addition to the current one, like the multipliers of Boyd et al. 2011,
section 7.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from microguard.sdc.nominal.frequency_search.objective import maximum_of
from microguard.sdc.nominal.partitions.cell_index import CellIndex
from microguard.sdc.nominal.partitions.part import GREEDY, SEARCHING, PartitionRequest, Stage

#: Approximate number of key combinations of a partition; this number needs about 100 MB of memory.
PART = 125_000
#: Number of turns of a stage. In turn t, partitions whose number modulo TURNS is t run.
TURNS = 8
#: Weight with which each turn adds the current error to the accumulated error, and decay factor of the
#: accumulated error.
_REMEMBERED, _LEFT = 0.5, 0.7
#: Maximum number of rounds in which the partitions, one by one, repair exceeded maximum errors and emptied
#: cells.
_REPAIR_ROUNDS = 2


@dataclass(frozen=True)
class SharedState:
    """Shared cells of a partition: their numbers in the whole file, and the partition's original records in
    each.
    """

    places: np.ndarray
    records: np.ndarray


class Parts(Protocol):
    """Interface to the partitions of a file, which are stored in memory or in files."""

    @property
    def index(self) -> CellIndex:
        """Return the index of the cells shared by the partitions."""

    def __len__(self) -> int: ...

    def shared_state(self, part: int) -> SharedState:
        """Return the shared cells of a partition."""

    def advance(self, stage: Stage, portions: Mapping[int, np.ndarray]) -> int:
        """Run a stage of the given partitions with their shares of the errors; return the number of moves
        tried.
        """

    def change(self, part: int) -> np.ndarray:
        """Return the change of each shared cell in the last stage of a partition, (shared,) int64."""


@dataclass(frozen=True)
class Reconciled:
    """Final errors of the shared cells, (cells,) int64, and the number of moves tried."""

    errors: np.ndarray
    work: int


def cut_regions(combinations: np.ndarray, most: int = PART) -> np.ndarray:
    """Assign consecutive regions to partitions of at most `most` combinations; return the partition of each
    region, (regions,).

    A region with more combinations is a separate partition.
    """
    part, inside, parts = 0, 0, []
    for number in combinations.tolist():
        if inside and inside + number > most:
            part, inside = part + 1, 0
        inside += number
        parts.append(part)
    return np.array(parts, np.int64)


def reconcile(parts: Parts, request: PartitionRequest) -> Reconciled:
    """Run all stages of the schedule for all partitions, so that every count becomes 0 or at least k."""
    numbers = range(len(parts))
    errors = np.zeros(len(parts.index), np.int64)
    zero_portions = {part: np.zeros(len(parts.shared_state(part).places), np.int64) for part in numbers}
    work = _advance(parts, GREEDY, zero_portions, errors)
    accumulated = np.zeros(len(errors))
    for stage in SEARCHING:
        for turn in range(TURNS):
            moving = numbers[turn::TURNS]
            accumulated = _LEFT * accumulated + _REMEMBERED * errors * len(moving) / len(parts)
            visible = errors + np.rint(accumulated).astype(np.int64)
            work += _advance(parts, stage, portions(parts, moving, visible), errors)
    for step in range(_REPAIR_ROUNDS):
        work += _repair(parts, Stage(len(SEARCHING) + 1 + step, "repair", step), request, errors)
    return Reconciled(errors, work)


def portions(parts: Parts, moving: Sequence[int], errors: np.ndarray) -> dict[int, np.ndarray]:
    """Divide the errors of all cells among the running partitions, in proportion to their original records.

    Portions are integers and sum to the error of each cell. If no moving partition has records in a cell, its
    error is not allocated.
    """
    records = np.zeros(len(errors), np.int64)
    for _, shared_state in _shared_states(parts, moving):
        records[shared_state.places] += shared_state.records
    # pseudo-random offset of each cell; without it, one partition would receive all errors of size 1
    phase = np.arange(len(errors)) * 2_654_435_761 % np.maximum(records, 1)
    before, allocated = np.zeros(len(errors), np.int64), {}
    for part, shared_state in _shared_states(parts, moving):
        at, of_cell = shared_state.places, np.maximum(records[shared_state.places], 1)
        after = before[at] + shared_state.records
        ends = [(errors[at] * number + phase[at]) // of_cell for number in (before[at], after)]
        allocated[part] = ends[1] - ends[0]
        before[at] = after
    return allocated


def _shared_states(parts: Parts, moving: Sequence[int]) -> Iterator[tuple[int, SharedState]]:
    return ((part, parts.shared_state(part)) for part in moving)


def _advance(parts: Parts, stage: Stage, allocated: Mapping[int, np.ndarray], errors: np.ndarray) -> int:
    """Run a stage and add the changes of the partitions to the errors; return the number of moves tried."""
    work = parts.advance(stage, allocated) if allocated else 0
    for part in allocated:
        errors[parts.shared_state(part).places] += parts.change(part)
    return work


def _repair(parts: Parts, stage: Stage, request: PartitionRequest, errors: np.ndarray) -> int:
    """Repair the partitions one by one with up-to-date errors, until no shared cell violates a limit."""
    work = 0
    for part in range(len(parts)):
        violated = _violations(parts.index, request, errors)
        if not violated.any():
            break
        if violated[parts.shared_state(part).places].any():
            work += _advance(parts, stage, portions(parts, [part], errors), errors)
    return work


def _violations(index: CellIndex, request: PartitionRequest, errors: np.ndarray) -> np.ndarray:
    """Return whether each cell exceeds its maximum error, or is empty although it must not be,
    (cells,) bool.
    """
    maxima = np.array([maximum_of(names, len(names), request.max_absolute_error) for names in index.tables])
    kept = (index.original >= request.k) & (index.dimension <= request.kept_dimension)
    beyond = np.abs(errors) > maxima[index.table] if len(maxima) else np.zeros(0, bool)
    return np.asarray(beyond | (kept & (errors == -index.original)))
