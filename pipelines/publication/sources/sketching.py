"""Take the sketch of a source in one small Spark job, exact and the same for any order and partitioning.

Each task keeps, of every subset of columns, the cells whose hashes are smallest, with their counts. A cell
that is among the smallest of all is among the smallest of each part that holds it, so sums over the parts
are exact.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql import types as t

from pipelines.engine.column_names import column, map_in_arrow
from pipelines.intake.screen import ScreenedInput
from pipelines.publication.areas import Areas
from pipelines.publication.key import key_name
from pipelines.publication.ledger import Entry
from pipelines.publication.sources.collisions import ledger_of
from pipelines.publication.sources.source_sketch import FILE, SHARED, UNITS, SourceSketch, subsets_of
from pipelines.publication.sources.unit_sketch import SIZE
from schemas.specification.model import Specification

#: Cells of each subset of columns.
CELLS = 1024
#: Records that a task looks at first, then twice as many, and so on.
FIRST_PIECE = 4 * CELLS
UNIT = "unit"
#: Text that is a number; to try each text would make Spark throw and catch an error a value.
NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
_ROWS = t.StructType(
    [
        t.StructField("subset", t.IntegerType()),
        t.StructField("cell", t.LongType()),
        t.StructField("records", t.LongType()),
        t.StructField("marks", t.ArrayType(t.LongType())),
    ]
)


def keep_sketch(
    screened: ScreenedInput, reader: Specification, specification: Specification, entry: Entry, areas: Areas
) -> None:
    """Leave the sketch of a release's source in its evidence; cells that were given have none.

    Parameters
    ----------
    reader : Specification
        How the input was read.
    """
    table = specification.table
    if entry.identity["content"] == "table" and table is not None and table.source == "cells":
        return
    unit = specification.unit
    columns = [name for name in reader.published if name != unit]
    if not columns:  # nothing to know records by; a source that is one by name still collides
        return
    ledger, folder = ledger_of(entry), areas.record(entry.release_id)
    sketched(screened.keyed, columns, unit, screened.remaining, areas.key()).write(folder / FILE)
    if ledger is not None:
        sketched(screened.keyed, columns, unit, screened.remaining, ledger.key(areas.public.folder)).write(
            folder / SHARED
        )


def sketched(
    frame: DataFrame, columns: list[str], unit: str | None, records: int, key: bytes
) -> SourceSketch:
    """The sketch of the records of a frame.

    Parameters
    ----------
    frame : DataFrame
    columns : list of str
        What is known of the records.
    unit : str or None
        The column that identifies the unit.
    records : int
        Of the frame.
    key : bytes
        The agency's secret; it travels with the tasks and stands in no plan that Spark shows.
    """
    sample = Sample(tuple(sorted(columns)), unit is not None, key)
    values = [value_hash(name, frame).alias(f"c{i}") for i, name in enumerate(sample.names)]
    units = [] if unit is None else [value_hash(unit, frame).alias(UNIT)]
    partial = map_in_arrow(frame.select(*values, *units), sample, _ROWS)
    added = partial.groupBy("subset", "cell").agg(
        f.sum("records").alias("records"), f.min("marks").alias("marks")
    )
    of_subset = Window.partitionBy("subset")
    most = f.when(f.col("subset") == UNITS, SIZE).otherwise(CELLS)
    ranked = added.withColumns(
        {
            "rank": f.row_number().over(of_subset.orderBy("cell")),
            "whole": f.count(f.lit(1)).over(of_subset) <= most,
        }
    )
    rows = ranked.where(f.col("rank") <= most).drop("rank").toArrow()
    return SourceSketch.of(rows, sample.subsets, records, key_name(key))


class Sample:
    """What a task makes of its records: a sample of each subset of columns, in rows of `_ROWS`.

    Parameters
    ----------
    names : tuple of str
        The columns, sorted; their values come hashed, as ``c0``, ``c1``, ... (and the unit as `UNIT`).
    with_unit : bool
    key : bytes
    """

    def __init__(self, names: tuple[str, ...], with_unit: bool, key: bytes) -> None:
        self.names, self._with_unit = names, with_unit
        self.subsets = subsets_of(list(names))
        digest = hmac.new(key, b"sketches of sources", hashlib.sha256).digest()
        self._salts = np.frombuffer(digest[:16], "<u8")

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        places = [[self.names.index(name) for name in subset] for subset in self.subsets]
        by_subset = [_Smallest(CELLS) for _ in places]
        sampled = _Smallest(SIZE)
        for batch in _in_pieces(batches):
            hashed = [self._mixed(batch[f"c{i}"]) for i in range(len(self.names))]
            total = np.add.reduce(hashed, axis=0)
            for place, smallest in zip(places, by_subset, strict=True):
                smallest.add(_summed(hashed, total, place))
            if self._with_unit:
                sampled.add(self._mixed(batch[UNIT]), np.column_stack(hashed))
        for subset, smallest in [*enumerate(by_subset), (UNITS, sampled)]:
            yield from smallest.rows(subset).to_batches()

    def _mixed(self, column: pa.Array) -> np.ndarray:
        return _mixed(column.to_numpy().view(np.uint64), self._salts)


def _in_pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The first records of a task in small pieces: what they leave spares all others most of the counting."""
    size = FIRST_PIECE
    for batch in batches:
        start = 0
        while start < len(batch):
            yield batch.slice(start, size)
            start, size = start + size, 2 * size


class _Smallest:
    """The cells with the smallest hashes met so far, one more than are kept, with counts or marks."""

    def __init__(self, size: int) -> None:
        self._size = size + 1  # whether there are more than are kept must show
        self._cells = np.zeros(0, np.int64)
        self._records = np.zeros(0, np.int64)
        self._marks: np.ndarray | None = None

    def add(self, hashes: np.ndarray, marks: np.ndarray | None = None) -> None:
        """Count the hashes of a batch, (n,) uint64, of units with their marks, (n, p)."""
        cells = (hashes >> np.uint64(1)).view(np.int64)
        if len(self._cells) == self._size:
            near = cells <= self._cells[-1]
            cells, marks = cells[near], None if marks is None else marks[near]
        if marks is not None:
            self._add_marks(cells, marks.view(np.int64))
            return
        counted = pc.value_counts(pa.array(cells))  # by hashing: sorting the batch would cost thrice
        joined = np.concatenate([self._cells, counted.field("values").to_numpy()])
        records = np.concatenate([self._records, counted.field("counts").to_numpy()])
        self._cells, place = np.unique(joined, return_inverse=True)
        self._records = np.bincount(place, records, len(self._cells)).astype(np.int64)
        self._cells, self._records = self._cells[: self._size], self._records[: self._size]

    def _add_marks(self, cells: np.ndarray, marks: np.ndarray) -> None:
        """Of a unit with several records, the smallest marks stay, whatever came first."""
        joined = np.concatenate([self._cells, cells])
        all_marks = marks if self._marks is None else np.concatenate([self._marks, marks])
        order = np.lexsort((*all_marks.T[::-1], joined))
        self._cells, first = np.unique(joined[order], return_index=True)
        self._cells, first = self._cells[: self._size], first[: self._size]
        self._marks = all_marks[order][first]
        self._records = np.ones(len(self._cells), np.int64)

    def rows(self, subset: int) -> pa.Table:
        """As they leave the task."""
        m = len(self._cells)
        marks = pa.nulls(m, pa.list_(pa.int64())) if self._marks is None else list(self._marks)
        return pa.table(
            {
                "subset": np.full(m, subset, np.int32),
                "cell": self._cells,
                "records": self._records,
                "marks": pa.array(marks, pa.list_(pa.int64())) if isinstance(marks, list) else marks,
            }
        )


def value_hash(name: str, frame: DataFrame) -> Column:
    """Hash of a value, the same in whatever type a file has it: 7, 7.0 and "7" are one value."""
    value = column(name)
    if isinstance(frame.schema[name].dataType, t.NumericType):
        return f.xxhash64(_zero(value.cast("double")))
    text = value.cast("string")
    number = f.xxhash64(_zero(text.try_cast(t.DoubleType())))
    return f.when(text.rlike(NUMBER), number).otherwise(f.xxhash64(text))


def _zero(number: Column) -> Column:
    return f.when(number == 0, f.lit(0.0)).otherwise(number)


def _summed(hashed: list[np.ndarray], total: np.ndarray, place: list[int]) -> np.ndarray:
    """Sum of the hashes of some columns: the same for any order and names of them.

    A sum of random hashes is one: mixing it again would cost half of all.
    """
    if len(place) <= 2:
        return np.asarray(np.add.reduce([hashed[i] for i in place], axis=0))
    left_out = [hashed[i] for i in range(len(hashed)) if i not in place]
    return np.asarray(total - np.add.reduce(left_out, axis=0)) if left_out else total


def _mixed(hashes: np.ndarray, salts: np.ndarray) -> np.ndarray:
    """Keyed: two rounds of SplitMix64 (Steele, Lea and Flood 2014), a half of the secret before each."""
    for salt in salts:
        hashes = hashes ^ salt
        hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        hashes = hashes ^ (hashes >> np.uint64(31))
    return hashes
