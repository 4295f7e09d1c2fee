"""Partitions of a file in the memory of one process."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector
from microguard.sdc.nominal.partitions.cell_index import CellIndex
from microguard.sdc.nominal.partitions.part import Part, PartitionRequest, Stage, Standing, VisibleErrors
from microguard.sdc.nominal.partitions.reconcile import SharedState, cut_regions, reconcile


class InMemory:
    """A file split into partitions of about a given number of key combinations each."""

    def __init__(self, file: FrequencyVector, asked: PartitionRequest, most: int) -> None:
        self.asked = asked
        parts = cut_regions(np.bincount(file.region_of()), most)[file.region_of()]
        self.parts = []
        for number in range(int(parts.max()) + 1):
            mine = parts == number
            regions = None if file.regions is None else file.regions[mine]
            part = FrequencyVector(
                file.codes[mine], file.counts[mine], file.domain_sizes, file.names, regions
            )
            self.parts.append(Part.of(number, part, asked))
        indexes = [CellIndex.from_tables(part.frequencies, part.tables) for part in self.parts]
        self.index = indexes[0]
        for index in indexes[1:]:
            self.index = self.index.joined(index)
        self._held = [SharedState(self.index.places(index), index.original) for index in indexes]
        self.standing = [Standing(part.frequencies.counts) for part in self.parts]
        self.work = 0
        self._change = [np.zeros(len(shared_state.places), np.int64) for shared_state in self._held]

    def __len__(self) -> int:
        return len(self.parts)

    def shared_state(self, part: int) -> SharedState:
        return self._held[part]

    def change(self, part: int) -> np.ndarray:
        return self._change[part]

    def advance(self, stage: Stage, portions: Mapping[int, np.ndarray]) -> int:
        work = 0
        for number, errors in portions.items():
            part, before = self.parts[number], self.standing[number]
            seen = VisibleErrors(self.index.original[self._held[number].places], errors, len(portions))
            self.standing[number], tried = part.run_stage(self.asked, stage, seen, before)
            after = part.errors(self.standing[number].counts)
            self._change[number] = after - part.errors(before.counts)
            work += tried
        self.work += work
        return work


def protected_in_parts(
    file: FrequencyVector, asked: PartitionRequest, most: int
) -> tuple[np.ndarray, InMemory, np.ndarray]:
    """Return the protected counts, the partitions, and the errors reported by the reconciliation."""
    parts = InMemory(file, asked, most)
    reconciled = reconcile(parts, asked)
    counts = np.concatenate([standing.counts for standing in parts.standing])
    return counts, parts, reconciled.errors


def everything(file: FrequencyVector, asked: PartitionRequest) -> ControlTables:
    """Return the control tables of the whole file."""
    return ControlTables.of(file, asked.tables, levels=asked.levels)
