"""Records of the input, written once as private Parquet files of the run.

Every pass of the run then reads the same typed and recoded records, by tasks, and the source is read once. A
table snapshot and a data frame are written unchanged, before their values are typed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.intake.column_types import value_type
from microguard.pipelines.intake.faults import translate_read_errors
from microguard.pipelines.intake.parquet_files import spark_type
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.model import Specification
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

if TYPE_CHECKING:
    from microguard.pipelines.intake.read import Microdata

#: Names of two frames in the staging area: the unchanged source, and the typed and recoded records.
INPUT, RECORDS = "input", "records"
#: Number of records after which the next file begins.
ROWS = 500_000


def write_down(
    spark: SparkSession, records: pa.RecordBatchReader, staging: PrivatePlace, name: str = INPUT
) -> DataFrame:
    """Write all records to files, and return the frame that reads them.

    Parameters
    ----------
    records : pyarrow.RecordBatchReader
        Read once, a batch at a time.
    staging : PrivatePlace
        Private; the caller removes it.

    Raises
    ------
    InputRejected
        If Spark cannot read the type of a column.
    """
    schema = pa.schema([pa.field(e.name, _plain(e.type), e.nullable, e.metadata) for e in records.schema])
    read_as = {entry.name: spark_type(value_type(entry.type)) for entry in schema}
    foreign = [f"{name} ({schema.field(name).type})" for name, kind in read_as.items() if kind is None]
    if foreign:
        raise InputRejected(
            f"The input has columns of types that Spark cannot read: {', '.join(foreign)}. Write them as "
            'text or as a number of another type, or exclude them with the role "identifier".'
        )
    batches = (batch.cast(schema) for batch in records)
    parts: list[Any] = []
    first: pa.RecordBatch | None = next(batches, pa.RecordBatch.from_pylist([], schema=schema))
    while first is not None:
        file = _File(schema, chain([first], batches))
        parts.append(staging.write_part(name, f"{len(parts):05}.parquet", file.write))
        first = next(batches, None)
    fields = [t.StructField(name, kind) for name, kind in read_as.items() if kind is not None]
    staging.commit_parts(name, parts, t.StructType(fields))
    return staging.read(spark, name)


def write_records(microdata: Microdata, specification: Specification, staging: PrivatePlace) -> Microdata:
    """Write the typed and recoded records of the input; return them with a frame that reads the written
    files.

    Raises
    ------
    InputRejected
        If a part of the input cannot be read.
    """
    if microdata.private:
        return microdata
    frame = microdata.frame
    with translate_read_errors(specification):
        staging.write(frame, RECORDS, "lz4")
    return replace(microdata, frame=staging.read(frame.sparkSession, RECORDS, frame.schema))


class PrivatePlace(Protocol):
    """Methods of a staging area that this module needs (`pipelines.publication.staging.staging_area`)."""

    def write(self, frame: DataFrame, name: str, compression: str | None = None) -> None:
        """Write the files of a frame with Spark."""

    def write_part(self, name: str, path: str, write: Callable[[BinaryIO], object]) -> Any:
        """Write one Parquet file."""

    def commit_parts(self, name: str, parts: Sequence[Any], schema: t.StructType) -> None:
        """Combine the written files to a frame."""

    def read(self, spark: SparkSession, name: str, schema: t.StructType | None = None) -> DataFrame:
        """Read the frame from its files."""


class _File:
    """One file of the frame; batches are appended until it has enough records."""

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        self.schema, self.batches = schema, batches

    def write(self, file: BinaryIO) -> None:
        rows = 0
        with pq.ParquetWriter(file, self.schema, compression="zstd") as writer:
            for batch in self.batches:
                writer.write_batch(batch)
                rows += len(batch)
                if rows >= ROWS:
                    return


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the Parquet type in which a type that exists only in memory is stored."""
    return {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(kind, kind)
