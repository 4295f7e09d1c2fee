"""Staged records, read back to count the guarantees and to compare the files with the staged records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.row_hash import ROWS, contents_in, hash_halves
from microguard.pipelines.guarantees.guarantee import Count, Guarantee
from microguard.pipelines.guarantees.record_files import RecordFiles, class_sizes_query, sizes_in
from microguard.pipelines.intake.untouched_columns import UntouchedColumns
from microguard.pipelines.publication.record_files.batches import record_batches
from microguard.pipelines.publication.record_files.csv_file import CSV, ForEach, csv_parts, holds
from microguard.pipelines.publication.stage import Staged
from microguard.schemas.requirements.requirement import MetricKey
from microguard.schemas.specification.model import Specification
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t


@dataclass(frozen=True)
class Written:
    """Counts and comparisons on the files of a staged release.

    Attributes
    ----------
    records : int
    counts : tuple of Count
        One count for each guarantee, in the order of the guarantees.
    as_staged : bool
        Whether the files, the CSV file included, have exactly the staged records.
    as_declared : bool
        Whether every file has exactly the columns and types of the contract.
    others_as_read : bool
        Whether the columns that protection does not change equal the input, record by record.
    derived_contradicted : int
        Number of records whose derived columns differ from the results of `[derived]` on the other columns.
    """

    records: int
    counts: tuple[Count, ...]
    as_staged: bool
    as_declared: bool
    others_as_read: bool
    derived_contradicted: int = 0

    def metrics(self) -> dict[MetricKey, float]:
        """Return the metrics of the written files for the gate (`schemas.requirements.records`)."""
        counted = {key: value for count in self.counts for key, value in count.metrics.items()}
        return counted | {
            MetricKey("content_as_staged"): float(self.as_staged),
            MetricKey("columns_as_declared"): float(self.as_declared),
            MetricKey("others_as_read"): float(self.others_as_read),
            MetricKey("derived_contradicted"): float(self.derived_contradicted),
        }


def verify_written(
    spark: SparkSession,
    staged: Staged,
    original: UntouchedColumns | None,
    protected: DataFrame,
    specification: Specification,
    guarantees: Sequence[Guarantee[RecordFiles]],
) -> Written:
    """Read the staged files back and count; compare their unchanged columns with the `original` ones.

    `protected` holds the staged records and, in addition, the unit that k counts. Without `original`, the
    staged records are the input, so that `as_staged` also covers the comparison with the input.
    """
    others = () if original is None else original.names
    frame = staged.records(spark)
    units = None if specification.counted is None else ProtectedUnits(protected, specification.counted)
    diverse = specification.method.min_diversity > 1 and not specification.withholds_values
    sensitive = specification.sensitive if diverse else ()
    files = StagedRecords(frame, frame.columns, others, private=units, sensitive=sensitive)
    counts = tuple(guarantee.count(files) for guarantee in guarantees)
    written, written_others = files.contents()
    declared = [(entry.name, entry.type) for entry in staged.contract.file_schema]
    as_staged = written == staged.content and _csv_holds(staged, partial(staged.place.for_each, spark))
    if original is None:
        others_as_read = as_staged
    else:
        others_as_read = not others or original.content == written_others
    as_declared = all(
        [(entry.name, entry.type) for entry in pq.read_schema(path)] == declared for path in staged.microdata
    )
    return Written(
        records=written[0],
        counts=counts,
        as_staged=as_staged,
        as_declared=as_declared and bool(staged.microdata),
        others_as_read=others_as_read,
        derived_contradicted=_contradicted(frame, staged, specification),
    )


def _contradicted(frame: DataFrame, staged: Staged, specification: Specification) -> int:
    if not specification.derived:
        return 0
    from microguard.pipelines.intake.derived_columns import contradictions

    return contradictions(frame, specification, staged.contract.plain)


class StagedRecords(RecordFiles):
    """Records that Spark tasks read.

    Counting classes also counts the values of sensitive variables in the same pass. The first count also sums
    the hashes of column lists.
    """

    def __init__(
        self,
        frame: DataFrame,
        *of: Sequence[str],
        private: ProtectedUnits | None = None,
        sensitive: Sequence[str] = (),
    ) -> None:
        """Register a frame as a relation for queries.

        Parameters
        ----------
        frame : DataFrame
        of : sequences of str
            Lists of columns whose hashes `contents` returns.
        private : ProtectedUnits, optional
        sensitive : sequence of str
            Variables that will be passed to `fewest_values`.
        """
        self.columns = {name: f"c{position}" for position, name in enumerate(frame.columns)}
        self.floating = frozenset(
            entry.name for entry in frame.schema if isinstance(entry.dataType, t.FloatType | t.DoubleType)
        )
        self.private = private
        self._spark, self._lists, self._sums = frame.sparkSession, len(of), hash_halves(*of)
        shown = [column(name).alias(plain) for name, plain in self.columns.items()]
        self._relation = frame.select(*shown, *[half.alias(name) for name, half in self._sums.items()])
        self._row: dict[str, int] | None = None
        self._sensitive = sensitive
        self._fewest: dict[tuple[tuple[str, ...], str], int] = {}

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query on the records."""
        return [tuple(row) for row in self._spark.sql(sql, records=self._relation).collect()]

    def class_sizes(self, variables: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Count equivalence classes by their number of records."""
        sums = [] if self._row is not None else list(self._sums)
        values = self.values(self._sensitive)
        rows = self.query(class_sizes_query(self.keys(variables), sums=sums, values=values))
        for i, name in enumerate(self._sensitive, start=2 + len(sums)):
            self._fewest[tuple(variables), name] = min((int(row[i]) for row in rows), default=0)
        if self._row is None:
            self._row = {name: sum(row[2 + i] for row in rows) for i, name in enumerate(sums)}
            self._row[ROWS] = sum(row[0] * row[1] for row in rows)
        return sizes_in(rows)

    def fewest_values(self, variables: Sequence[str], counted: str, withheld: Sequence[str] = ()) -> int:
        """Return the smallest number of distinct values of a variable in any class."""
        known = None if withheld else self._fewest.get((tuple(variables), counted))
        return super().fewest_values(variables, counted, withheld) if known is None else known

    def contents(self) -> tuple[tuple[int, int], ...]:
        """Return the number of rows and the sum of hashes of each list of columns (`engine.row_hash`)."""
        if self._row is None:  # computed here if no guarantee has counted classes yet
            sums = ", ".join(f"sum({name})" for name in self._sums)
            ((rows, *totals),) = self.query(f"SELECT count(*), {sums} FROM {{records}}")
            self._row = {
                ROWS: rows,
                **{name: each or 0 for name, each in zip(self._sums, totals, strict=True)},
            }
        return contents_in(self._row, self._lists)


class ProtectedUnits:
    """Protected records with their household or unit, which k counts but which is not published."""

    def __init__(self, frame: DataFrame, counted: str) -> None:
        self._frame, self._counted = frame, counted

    def fewest_units(self, variables: Sequence[str]) -> int:
        """Return the smallest number of distinct units in any class."""
        units = f.count_distinct(column(self._counted)).alias("units")
        classes = self._frame.groupBy(*[column(name) for name in variables]).agg(units)
        row = classes.agg(f.min("units")).first()
        return 0 if row is None else int(row[0] or 0)


def _csv_holds(staged: Staged, for_each: ForEach) -> bool:
    """Return whether the CSV file, if there is one, has the same records in the same order as the other
    files.
    """
    contract = staged.contract
    parts = [partial(record_batches, part, contract) for part in csv_parts(staged.microdata)]
    return not contract.csv or holds(staged.folder / CSV, parts, contract.plain, staged.csv_ends, for_each)
