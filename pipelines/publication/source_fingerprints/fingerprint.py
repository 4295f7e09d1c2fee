"""Fingerprint of a source, computed exactly in one small Spark job, for any row order and partitioning.

For every subset of columns, each task keeps the cells with the smallest hashes and their counts, and returns
them in one row. A cell that is among the smallest of the file is among the smallest of each partition that
contains it, so that sums over the partitions are exact. Further tasks add the results of the partitions; each
task does so for some of the subsets.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from microguard.pipelines.engine.column_names import map_in_arrow
from microguard.pipelines.engine.frames import tasks_at_once
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.key import key_name
from microguard.pipelines.publication.ledger import Entry
from microguard.pipelines.publication.source_fingerprints.amount_fingerprint import (
    amount_fingerprint,
    mixed,
)
from microguard.pipelines.publication.source_fingerprints.conflicts import ledger_of
from microguard.pipelines.publication.source_fingerprints.shape import ordered_hash, pairs_of
from microguard.pipelines.publication.source_fingerprints.source_fingerprint import (
    FILE,
    PAIRS,
    SHARED,
    UNITS,
    SourceFingerprint,
    Subset,
    subsets_of,
)
from microguard.pipelines.publication.source_fingerprints.totals import (
    Totals,
    largest_code,
    totals_of_cells,
    totals_of_records,
    value_hash,
)
from microguard.pipelines.publication.source_fingerprints.unit_fingerprint import SIZE
from microguard.schemas.specification.model import Specification
from pyspark.sql import DataFrame
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

#: Number of cells that are stored for each subset of columns.
CELLS = 1024
#: Number of records in the first piece that a task reads; it doubles with each piece, up to the largest
#: number.
FIRST_PIECE, LARGEST_PIECE = 4 * CELLS, 1024 * CELLS
UNIT = "unit"
#: Columns that a task returns for a subset: arrays of int64 as bytes, with the marks row by row.
_PARTS = t.StructType(
    [
        t.StructField("subset", t.IntegerType()),
        t.StructField("cells", t.BinaryType()),
        t.StructField("records", t.BinaryType()),
        t.StructField("marks", t.BinaryType()),
    ]
)
_ROWS = t.StructType(
    [
        t.StructField("subset", t.IntegerType()),
        t.StructField("cell", t.LongType()),
        t.StructField("records", t.LongType()),
        t.StructField("marks", t.ArrayType(t.LongType())),
        t.StructField("whole", t.BooleanType()),
    ]
)


def keep_fingerprint(
    screened: ValidatedInput, reader: Specification, specification: Specification, entry: Entry, areas: Areas
) -> None:
    """Write the fingerprint of a release's source to the evidence of the release.

    Parameters
    ----------
    reader : Specification
        Specification with which the input was read.
    """
    table = specification.table
    finished = entry.identity["content"] == "table" and table is not None and table.source == "cells"
    unit = specification.unit
    columns = [name for name in reader.published if name != unit]
    if not columns:  # nothing identifies the records, but a source of the same name is still a conflict
        return
    ledger, folder = ledger_of(entry), areas.record(entry.release_id)
    places = [(areas.key(), folder / FILE)]
    if ledger is not None:
        places.append((ledger.key(areas.public.folder), folder / SHARED))
    frame, records = screened.keyed, screened.remaining
    if finished:
        assert table is not None
        fingerprints = [SourceFingerprint(records, key_name(key), None, {}) for key, _ in places]
        totals = totals_of_cells(frame, table)
    else:
        fingerprints = [compute_fingerprint(frame, columns, unit, records, key) for key, _ in places]
        totals = _totals(frame, reader, {unit}, fingerprints[0])
    for (key, path), fingerprint in zip(places, fingerprints, strict=True):
        replace(fingerprint, amounts=amount_fingerprint(*totals, salts_of(key))).write(path)


def _totals(
    frame: DataFrame, reader: Specification, left_out: set[str | None], fingerprint: SourceFingerprint
) -> Totals:
    """Compute totals by the codes of those columns for which the fingerprint has counts."""
    numeric = [name for name in reader.published if reader.variables[name].kind == "numeric"]
    weights = [name for name in reader.with_role("weight") if name in frame.columns]
    limits = {
        name: largest_code(fingerprint.cells[(name,)])
        for name in reader.published
        if (name,) in fingerprint.cells and name not in left_out.union(numeric, weights)
    }
    return totals_of_records(frame, limits, numeric, weights[0] if weights else None)


def compute_fingerprint(
    frame: DataFrame, columns: list[str], unit: str | None, records: int, key: bytes
) -> SourceFingerprint:
    """Compute the fingerprint of the records of a frame.

    Parameters
    ----------
    frame : DataFrame
    columns : list of str
        Columns to count.
    unit : str or None
        Column that identifies the unit.
    records : int
        Number of records of the frame.
    key : bytes
        The agency's secret; it is sent with the tasks and does not appear in a query plan.
    """
    sample = Sample(tuple(sorted(columns)), unit is not None, key)
    values = [value_hash(name, frame).alias(f"c{i}") for i, name in enumerate(sample.names)]
    units = [] if unit is None else [value_hash(unit, frame).alias(UNIT)]
    parts = map_in_arrow(frame.select(*values, *units), sample, _PARTS)
    of_subsets = parts.repartition(tasks_at_once(frame.sparkSession), "subset")
    return SourceFingerprint.from_rows(
        map_in_arrow(of_subsets, together, _ROWS).toArrow(), sample.subsets, records, key_name(key)
    )


class Sample:
    """Sample of the cells of each subset of columns over the records of one task.

    Parameters
    ----------
    names : tuple of str
        The columns, sorted; their values are hashed, as ``c0``, ``c1``, ... (and the unit as `UNIT`).
    with_unit : bool
    key : bytes
    """

    def __init__(self, names: tuple[str, ...], with_unit: bool, key: bytes) -> None:
        self.names, self._with_unit = names, with_unit
        self.subsets = subsets_of(list(names))
        pairs = pairs_of([subset[0] for subset in self.subsets if len(subset) == 1])
        self.pairs = [(names.index(row), names.index(column)) for row, column in pairs]
        self._salts = salts_of(key)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the rows of the sample for one task."""
        of_subsets = [(self._columns_of(subset), Smallest(CELLS)) for subset in self.subsets]
        sampled, ordered = Smallest(SIZE), [Smallest(CELLS) for _ in self.pairs]
        singles = {columns[0]: smallest for (columns, _), smallest in of_subsets if len(columns) == 1}
        for batch in _in_pieces(batches):
            hashed = [self._mixed(batch[f"c{i}"]) for i in range(len(self.names))]
            total = np.add.reduce(hashed, axis=0)
            for (columns, left_out), smallest in of_subsets:
                smallest.count(_summed(hashed, columns) if left_out is None else total - hashed[left_out])
            for (row, column), smallest in zip(self.pairs, ordered, strict=True):
                if singles[row].is_whole and singles[column].is_whole:
                    smallest.count(ordered_hash(hashed[row], hashed[column]))
            if self._with_unit:
                sampled.mark(self._mixed(batch[UNIT]), np.column_stack(hashed))
        kept = [*enumerate(smallest for _, smallest in of_subsets), (UNITS, sampled)]
        kept += [(PAIRS - i, smallest) for i, smallest in enumerate(ordered)]
        yield pa.RecordBatch.from_pylist(
            [{"subset": subset, **smallest.part()} for subset, smallest in kept], to_arrow_schema(_PARTS)
        )

    def _columns_of(self, subset: Subset) -> tuple[list[int], int | None]:
        """Return the positions of a subset's columns, and that of the missing column if exactly one is
        missing.
        """
        columns = [self.names.index(name) for name in subset]
        others = set(range(len(self.names))) - set(columns)
        return columns, others.pop() if len(others) == 1 and len(columns) > 2 else None

    def _mixed(self, column: pa.Array) -> np.ndarray:
        return mixed(column.to_numpy().view(np.uint64), self._salts)


def salts_of(key: bytes) -> np.ndarray:
    """Return the two halves of a fingerprint's key, (2,) uint64."""
    digest = hmac.new(key, b"sketches of sources", hashlib.sha256).digest()
    return np.frombuffer(digest[:16], "<u8")


def _in_pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Split the first records of a task into small pieces, because their smallest hashes filter the later
    records.
    """
    size = FIRST_PIECE
    for batch in batches:
        start = 0
        while start < len(batch):
            yield batch.slice(start, size)
            start, size = start + size, min(2 * size, LARGEST_PIECE)


def together(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add up all parts of some subsets, and return rows of a fingerprint."""
    of_subset: dict[int, Smallest] = {}
    for part in (part for batch in batches for part in batch.to_pylist()):
        subset = part["subset"]
        of_subset.setdefault(subset, Smallest(SIZE if subset == UNITS else CELLS)).add(part)
    for subset, smallest in of_subset.items():
        yield smallest.rows(subset)


class Smallest:
    """Cells with the smallest hashes so far, with their counts or marks.

    The object stores `most` + 1 cells, to show whether there are more than `most`.

    Parameters
    ----------
    most : int
        Number of cells to keep.
    """

    def __init__(self, most: int) -> None:
        self._most, self._size = most, most + 1
        self._cells = np.zeros(0, np.int64)
        self._records = np.zeros(0, np.int64)
        self._marks: np.ndarray | None = None

    def count(self, hashes: np.ndarray) -> None:
        """Count the hashes of a batch, (n,) uint64."""
        cells = _cells(hashes[self._near(hashes)])
        # counted by hashing, because sorting takes three times as long
        counted = pc.value_counts(pa.array(cells))
        self._add_counts(counted.field("values").to_numpy(), counted.field("counts").to_numpy())

    def mark(self, hashes: np.ndarray, marks: np.ndarray) -> None:
        """Add the hashes of units, (n,) uint64, with their marks, (n, p) uint64."""
        near = self._near(hashes)
        self._add_marks(_cells(hashes[near]), marks[near].view(np.int64))

    def add(self, part: Mapping[str, Any]) -> None:
        """Add the cells of another task, in the format of `part`."""
        cells, records, marks = (
            np.frombuffer(part[name], np.int64) for name in ("cells", "records", "marks")
        )
        if len(marks):
            self._add_marks(cells, marks.reshape(len(cells), -1))
        else:
            self._add_counts(cells, records)

    def _near(self, hashes: np.ndarray) -> np.ndarray | slice:
        """Select the hashes that may be among the smallest."""
        full = len(self._cells) == self._size
        return hashes <= np.uint64(2 * int(self._cells[-1]) + 1) if full else slice(None)

    def _add_counts(self, cells: np.ndarray, records: np.ndarray) -> None:
        joined = np.concatenate([self._cells, cells])
        counts = np.concatenate([self._records, records])
        self._cells, place = np.unique(joined, return_inverse=True)
        self._records = np.bincount(place, counts, len(self._cells)).astype(np.int64)
        self._cells, self._records = self._cells[: self._size], self._records[: self._size]

    def _add_marks(self, cells: np.ndarray, marks: np.ndarray) -> None:
        """Add units with marks; a unit with several records keeps its smallest marks, so that the order has
        no effect.
        """
        joined = np.concatenate([self._cells, cells])
        all_marks = marks if self._marks is None else np.concatenate([self._marks, marks])
        order = np.lexsort((*all_marks.T[::-1], joined))
        self._cells, first = np.unique(joined[order], return_index=True)
        self._cells, first = self._cells[: self._size], first[: self._size]
        self._marks = all_marks[order][first]
        self._records = np.ones(len(self._cells), np.int64)

    @property
    def is_whole(self) -> bool:
        """Return whether all cells seen so far are stored."""
        return len(self._cells) < self._size

    def part(self) -> dict[str, bytes]:
        """Return the cells of one task, which has read only a part of the records."""
        marks = b"" if self._marks is None else self._marks.tobytes()
        return {"cells": self._cells.tobytes(), "records": self._records.tobytes(), "marks": marks}

    def rows(self, subset: int) -> pa.RecordBatch:
        """Return the cells of all records, as rows of `_ROWS`."""
        cells, records = self._cells[: self._most], self._records[: self._most]
        m = len(cells)
        marks = [None] * m if self._marks is None else self._marks[:m].tolist()
        columns = [np.full(m, subset), cells, records, marks, np.full(m, len(self._cells) <= self._most)]
        return pa.RecordBatch.from_arrays(
            [pa.array(each, kind.type) for each, kind in zip(columns, to_arrow_schema(_ROWS), strict=True)],
            schema=to_arrow_schema(_ROWS),
        )


def _summed(hashed: list[np.ndarray], columns: list[int]) -> np.ndarray:
    """Sum the hashes of some columns; their order and names have no effect.

    A sum of random hashes is a random hash, so that the sum needs no further mixing, which would double the
    cost.
    """
    first, *others = (hashed[i] for i in columns)
    return sum(others, start=first)


def _cells(hashes: np.ndarray) -> np.ndarray:
    """Convert hashes to non-negative int64 with the same order, because Spark and Parquet have this type."""
    return (hashes >> np.uint64(1)).view(np.int64)
