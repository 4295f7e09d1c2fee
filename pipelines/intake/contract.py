"""Contract of a release: the columns and types of the input, which the published files must have, too."""

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
    """Columns, types and layout of the published microdata.

    Attributes
    ----------
    schema : pyarrow.Schema
        Columns in the order and with the types of the input.
    categories : mapping of column to list
        Categories of ordered dictionary columns in their order; only categories that occur are written.
    partition_by : str or None
        Partition column: its values name the folders, and the record files do not contain it.
    csv : bool
        Whether the records are also published as CSV.
    declared : mapping of column to str
        Types that the writer of the input declared, for columns that are published with another type.
    """

    schema: pa.Schema
    categories: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    partition_by: str | None = None
    csv: bool = False
    declared: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Return the published columns in order."""
        return list(self.schema.names)

    @property
    def reader_order(self) -> list[str]:
        """Return the published columns in the order of readers: the partition column is last."""
        return [*self.file_schema.names, *([] if self.partition_by is None else [self.partition_by])]

    @property
    def file_schema(self) -> pa.Schema:
        """Return the columns stored in the record files: all but the partition column."""
        return pa.schema([entry for entry in self.schema if entry.name != self.partition_by])

    @property
    def plain(self) -> pa.Schema:
        """Return all columns; dictionary types are replaced by the types of their values."""
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
    """Build the contract from the types and dictionary categories that the input files declare.

    Parameters
    ----------
    frame : DataFrame
        The published columns, as Spark reads them.
    files : list of str
        Addresses of the input files. Columns that no local Parquet file declares have Spark's type.
    retyped : frozenset of str
        Columns whose type recoding changed; they have Spark's type.
    hidden : sequence of str
        Columns that are read but not published; the files must also agree on their types.

    Raises
    ------
    SchemaConflict
        If the files differ, or a column has no type or one that Arrow does not know.
    """
    from_spark = to_arrow_schema(frame.schema)
    paths = [Path(path) for path in map(local_path, files) if path is not None]
    if not parquet or len(paths) < len(files):
        return Contract(from_spark)
    types_by_file = [file_types(path, [*from_spark.names, *hidden]) for path in paths]
    types = joint_types(types_by_file)
    untyped = [e.name for e in from_spark if pa.types.is_null(types.get(e.name, e.type))]
    if untyped:
        raise SchemaConflict(
            f"has columns without a type, because every value is missing: {', '.join(untyped)}. Write them "
            'with a type, or exclude them with the role "identifier".'
        )
    fields = [
        pa.field(e.name, e.type if e.name in retyped else types.get(e.name, e.type)) for e in from_spark
    ]
    foreign = [e.name for e in fields if isinstance(e.type, pa.BaseExtensionType)]
    if foreign:
        raise SchemaConflict(
            f"has columns of extension types of another program: {', '.join(foreign)}. Expected types that "
            "Arrow defines: write these columns with another type."
        )
    ordered = [e.name for e in fields if pa.types.is_dictionary(e.type) and e.type.ordered]
    with_own_type = pa.schema([entry for entry in fields if entry.name not in retyped])
    return Contract(
        pa.schema(fields),
        {name: _categories(paths, name) for name in ordered},
        declared=declared_otherwise(types_by_file, with_own_type),
    )


def _categories(paths: list[Path], name: str) -> list[object]:
    """Return the ordered categories of a column: those of the first file, followed by new ones of later
    files.
    """
    categories: dict[object, None] = {}
    for path in paths:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                for chunk in file.read_row_group(group, columns=[name])[name].chunks:
                    categories |= dict.fromkeys(chunk.dictionary.to_pylist())
    return list(categories)
