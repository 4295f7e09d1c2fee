"""Files of the partitions of key combinations: arrays in the staging area.

A file is written atomically and never replaced by other content, so that a retried task finds the same state.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from microguard.pipelines.publication.staging.staging_area import StagingArea
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import FrequencyVector
from microguard.sdc.nominal.partitions.cell_index import CellIndex
from microguard.sdc.nominal.partitions.part import Part, Standing
from microguard.sdc.nominal.partitions.reconcile import SharedState

_OF_CELLS = ("cells", "original", "dimension", "table", "level")


@dataclass(frozen=True)
class PartFiles:
    """Files of the partitions, below a name in the staging area."""

    place: StagingArea
    name: str

    def write_part(self, part: Part, digests: np.ndarray) -> None:
        """Write a partition, the digests of its key combinations, and the index of its shared cells."""
        frequencies, tables = part.frequencies, part.tables
        regions = {} if frequencies.regions is None else {"regions": frequencies.regions}
        named = {"names": frequencies.names, "tables": tables.tables, "levels": tables.levels}
        self._write(
            f"{part.number}-part",
            named=json.dumps(named),
            codes=frequencies.codes,
            counts=frequencies.counts,
            domain_sizes=frequencies.domain_sizes,
            orders=part.orders,
            places=part.places,
            **regions,
            **{name: getattr(tables, name) for name in _OF_CELLS},
        )
        index = CellIndex.from_tables(frequencies, tables)
        keys = {f"keys{t}": keys for t, keys in enumerate(index.keys)}
        self._write(f"{part.number}-index", tables=json.dumps(index.tables), original=index.original, **keys)
        self._write(f"{part.number}-digests", digests=digests)

    def part(self, number: int) -> Part:
        """Read a partition."""
        arrays = self._read(f"{number}-part")
        named = json.loads(str(arrays["named"]))
        frequencies = FrequencyVector(
            arrays["codes"],
            arrays["counts"],
            arrays["domain_sizes"],
            tuple(named["names"]),
            arrays.get("regions"),
        )
        tables = ControlTables(
            tables=tuple(tuple(names) for names in named["tables"]),
            levels=tuple(named["levels"]),
            **{name: arrays[name] for name in _OF_CELLS},
        )
        return Part(number, frequencies, tables, arrays["orders"], arrays["places"])

    def digests(self, number: int) -> np.ndarray:
        """Read the digests of the key combinations of a partition, (m, 2)."""
        return np.asarray(self._read(f"{number}-digests")["digests"])

    def index(self, number: int) -> CellIndex:
        """Read the index of the shared cells of a partition."""
        arrays = self._read(f"{number}-index")
        tables = tuple(tuple(names) for names in json.loads(str(arrays["tables"])))
        return CellIndex(tables, tuple(arrays[f"keys{t}"] for t in range(len(tables))), arrays["original"])

    def write_held(self, number: int, held: SharedState, original: np.ndarray) -> None:
        """Write the positions of a partition's cells among the cells of the file, and their original
        counts.
        """
        self._write(f"{number}-held", places=held.places, records=held.records, original=original)

    def held(self, number: int) -> SharedState:
        """Read the part of the shared state that a partition contributes."""
        arrays = self._read(f"{number}-held")
        return SharedState(arrays["places"], arrays["records"])

    def original(self, number: int) -> np.ndarray:
        """Read the original counts, in the whole file, of the shared cells of a partition."""
        return np.asarray(self._read(f"{number}-held")["original"])

    def write_standing(self, number: int, stage: int, standing: Standing, change: np.ndarray) -> None:
        """Write the state of a partition after a stage, and its changes of the shared cells."""
        self._write(f"{number}-after-{stage}", counts=standing.counts, hot=standing.hot, change=change)

    def standing(self, number: int, stage: int) -> Standing:
        """Read the state of a partition after a stage."""
        arrays = self._read(f"{number}-after-{stage}")
        return Standing(arrays["counts"], float(arrays["hot"]))

    def change(self, number: int, stage: int) -> np.ndarray:
        """Read the changes that the last stage of a partition made to the shared cells."""
        return np.asarray(self._read(f"{number}-after-{stage}")["change"])

    def forget_standing(self, number: int, stage: int) -> None:
        """Remove the states of earlier stages."""
        self.place.remove(self._file(f"{number}-after-{stage}"))

    def _write(self, name: str, **arrays: Any) -> None:
        self.place.save(self._file(name), lambda file: np.savez(file, **arrays))

    def _read(self, name: str) -> dict[str, np.ndarray]:
        with self.place.open(self._file(name)) as file, np.load(file, allow_pickle=False) as archive:
            return dict(archive)

    def _file(self, name: str) -> str:
        return f"{self.name}/{name}.npz"
