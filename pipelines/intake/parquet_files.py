"""Parquet files read with Spark, also if Spark cannot read the type of a column that is not needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.engine.failures import of_machines
from microguard.pipelines.intake.column_types import is_binary, is_text, physical_types, value_type
from microguard.pipelines.intake.faults import input_label
from microguard.pipelines.intake.input_file import foreign_format
from microguard.pipelines.intake.lake_tables import folders_and_links, local_path, refuse_lake_tables
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.model import Specification
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

_PLAIN: dict[pa.DataType, t.DataType] = {
    pa.bool_(): t.BooleanType(),
    pa.int8(): t.ByteType(),
    pa.int16(): t.ShortType(),
    pa.int32(): t.IntegerType(),
    pa.int64(): t.LongType(),
    pa.uint8(): t.ShortType(),
    pa.uint16(): t.IntegerType(),
    pa.uint32(): t.LongType(),
    pa.uint64(): t.DecimalType(20, 0),
    pa.float32(): t.FloatType(),
    pa.float64(): t.DoubleType(),
    pa.date32(): t.DateType(),
}


def read_parquet(spark: SparkSession, specification: Specification) -> tuple[DataFrame, list[str]]:
    """Read every column that Spark can read; return them and the names of all columns of the files.

    Raises
    ------
    InputRejected
        If the input is a Delta, Iceberg or Hudi table, or a needed column has a type that Spark cannot read.
    """
    path, named = specification.input_path, input_label(specification)
    reader = spark.read.option("mergeSchema", False)
    # with an empty schema, Spark lists the files without opening them
    files = sorted(reader.schema(t.StructType()).parquet(path).inputFiles())
    refuse_lake_tables(folders_and_links(files), named, spark)
    paths = [place for place in map(local_path, files) if place is not None]
    _refuse_other_files(paths, named)
    reader = spark.read.option("mergeSchema", False)
    try:
        frame = reader.parquet(path)
        return frame, frame.columns
    except (PySparkException, Py4JJavaError) as error:
        if of_machines(error) or not paths or len(paths) < len(files):
            raise
        failed = error
    readable, unreadable = _types_of(paths)
    if not unreadable:
        raise failed
    needed = [
        f"{name} ({kind})"
        for name, kind in unreadable.items()
        if name in specification.variables and specification.variables[name].role != "identifier"
    ]
    if needed:
        raise InputRejected(
            f"{named} has columns of types that Spark cannot read: {', '.join(needed)}. Write them as text "
            'or as a number of another type, or exclude them with the role "identifier".'
        )
    frame = reader.schema(t.StructType([t.StructField(*each) for each in readable.items()])).parquet(path)
    return frame, [*frame.columns, *unreadable]


def _refuse_other_files(paths: list[str], named: str) -> None:
    """Refuse files that do not begin like Parquet files, and name the first of them."""
    others = [Path(path) for path in paths if not _begins_as_parquet(path)]
    if 0 < len(others) < len(paths):
        what, _ = foreign_format(others[0]) or ("a file of another format", "")
        raise InputRejected(
            f"{named}: expected only Parquet files, found {len(others)} other file(s); the first, "
            f"{others[0].name!r}, is {what}. Move these files elsewhere, or write them again."
        )


def _begins_as_parquet(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) in (b"PAR1", b"PARE")


def _types_of(paths: list[str]) -> tuple[dict[str, t.DataType], dict[str, pa.DataType]]:
    """Return Spark's types of the readable columns, and Arrow's types of the columns that Spark
    cannot read.
    """
    readable: dict[str, t.DataType] = {}
    unreadable: dict[str, pa.DataType] = {}
    for path in paths:
        with pq.ParquetFile(path) as file:
            physical = physical_types(file)
            for entry in file.schema_arrow:
                kind = spark_type(value_type(entry.type), physical.get(entry.name, ""))
                if kind is None:
                    unreadable.setdefault(entry.name, entry.type)
                else:
                    readable.setdefault(entry.name, kind)
    return {name: kind for name, kind in readable.items() if name not in unreadable}, unreadable


def spark_type(kind: pa.DataType, physical: str = "") -> t.DataType | None:
    """Return the type with which our session reads a column; None if Spark cannot read it."""
    if pa.types.is_timestamp(kind):
        if physical == "INT96":
            return t.TimestampType()
        if kind.unit == "ns":
            return t.LongType()
        return t.TimestampNTZType() if kind.tz is None else t.TimestampType()
    if pa.types.is_decimal(kind):
        return t.DecimalType(kind.precision, kind.scale) if kind.precision <= 38 else None
    if is_text(kind):
        return t.StringType()
    if is_binary(kind):
        return t.BinaryType()
    return t.LongType() if pa.types.is_duration(kind) else _PLAIN.get(kind)


def nanosecond_columns(files: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns that the first local file declares as timestamps in nanoseconds, as pandas writes.

    Our session reads their values as whole numbers.
    """
    place = next(filter(None, map(local_path, files)), None)
    if place is None:
        return []
    schema = pq.read_schema(place)
    kinds = {name: schema.field(name).type for name in names if name in schema.names}
    return [name for name, kind in kinds.items() if pa.types.is_timestamp(kind) and kind.unit == "ns"]
