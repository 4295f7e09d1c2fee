"""The contract of a release: the columns and types of the input, which what is published keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from microguard.pipelines.intake.column_types import (
    SchemaConflict,
    declared_otherwise,
    file_types,
    joint_types,
)
from microguard.pipelines.intake.lake_tables import local_path
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema


@dataclass(frozen=True)
class Contract:
    """What the published microdata look like.

    Attributes
    ----------
    schema : pyarrow.Schema
        Columns in the order and with the types of the input.
    categories : mapping of column to list
        Order of the categories of ordered dictionary columns; only those that occur are written.
    partition_by : str or None
        The column whose values name the folders of the record files, which do not hold it.
    csv : bool
        Whether the records are published as CSV, too.
    declared : mapping of column to str
        Types that the writer of the input declared, of columns that are published with another one.
    """

    schema: pa.Schema
    categories: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    partition_by: str | None = None
    csv: bool = False
    declared: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Published columns, in order."""
        return list(self.schema.names)

    @property
    def as_read(self) -> list[str]:
        """Published columns, in the order of those who read them: what folders name comes last."""
        return [*self.of_files.names, *([] if self.partition_by is None else [self.partition_by])]

    @property
    def of_files(self) -> pa.Schema:
        """Columns that the record files hold."""
        return pa.schema([entry for entry in self.schema if entry.name != self.partition_by])

    @property
    def plain(self) -> pa.Schema:
        """All columns, categories as the values they stand for."""
        return pa.schema(
            [
                pa.field(e.name, e.type.value_type if pa.types.is_dictionary(e.type) else e.type)
                for e in self.schema
            ]
        )


def contract_from_files(
    frame: DataFrame,
    files: list[str],
    parquet: bool,
    retyped: frozenset[str] = frozenset(),
    hidden: Sequence[str] = (),
) -> Contract:
    """Types of the published columns as the files declare them, categories of dictionaries included.

    Parameters
    ----------
    frame : DataFrame
        The published columns, as Spark reads them.
    files : list of str
        Addresses; what no local Parquet file declares has Spark's type.
    retyped : frozenset of str
        Columns that recoding gave another type, which is Spark's.
    hidden : sequence of str
        Columns that are read and not published: the files must agree on their types, too.

    Raises
    ------
    Unfit
    """
    from_spark = to_arrow_schema(frame.schema)
    paths = [Path(path) for path in map(local_path, files) if path is not None]
    if not parquet or len(paths) < len(files):
        return Contract(from_spark)
    of_files = [file_types(path, [*from_spark.names, *hidden]) for path in paths]
    types = joint_types(of_files)
    untyped = [e.name for e in from_spark if pa.types.is_null(types.get(e.name, e.type))]
    if untyped:
        raise SchemaConflict(
            f"has columns without a type, as every value is missing: {', '.join(untyped)}. Give them one in "
            'the file, or leave them out by the role "identifier".'
        )
    fields = [
        pa.field(e.name, e.type if e.name in retyped else types.get(e.name, e.type)) for e in from_spark
    ]
    foreign = [e.name for e in fields if isinstance(e.type, pa.BaseExtensionType)]
    if foreign:
        raise SchemaConflict(
            f"has columns of types that only another program knows: {', '.join(foreign)}. Change the file."
        )
    ordered = [e.name for e in fields if pa.types.is_dictionary(e.type) and e.type.ordered]
    kept = pa.schema([entry for entry in fields if entry.name not in retyped])
    return Contract(
        pa.schema(fields),
        {name: _categories(paths, name) for name in ordered},
        declared=declared_otherwise(of_files, kept),
    )


def _categories(paths: list[Path], name: str) -> list[object]:
    """Categories of an ordered dictionary column, in their order; further ones of later files follow."""
    categories: dict[object, None] = {}
    for path in paths:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                for chunk in file.read_row_group(group, columns=[name])[name].chunks:
                    categories |= dict.fromkeys(chunk.dictionary.to_pylist())
    return list(categories)
