"""The contract of a release: the columns and types of the input, which what is published keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema


class Unfit(Exception):
    """Files that make no contract; the text goes on after the name of the input."""


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
    """

    schema: pa.Schema
    categories: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    partition_by: str | None = None
    csv: bool = False

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


def contract_of(
    frame: DataFrame, files: list[str], parquet: bool, retyped: frozenset[str] = frozenset()
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

    Raises
    ------
    Unfit
    """
    from_spark = to_arrow_schema(frame.schema)
    paths = [path for path in map(local, files) if path is not None]
    if not parquet or len(paths) < len(files):
        return Contract(from_spark)
    schemas = [pq.read_schema(path) for path in paths]
    first = schemas[0]
    for other in schemas[1:]:
        if {(e.name, e.type) for e in other} != {(e.name, e.type) for e in first}:
            raise Unfit("has files that differ in columns or types. Write them with one schema.")
    declared = {e.name: _joint(e.type, len(files)) for e in first}
    untyped = [e.name for e in from_spark if pa.types.is_null(declared.get(e.name, e.type))]
    if untyped:
        raise Unfit(
            f"has columns without a type, as every value is missing: {', '.join(untyped)}. Give them one in "
            'the file, or leave them out by the role "identifier".'
        )
    fields = [
        pa.field(e.name, e.type if e.name in retyped else declared.get(e.name, e.type)) for e in from_spark
    ]
    foreign = [e.name for e in fields if isinstance(e.type, pa.BaseExtensionType)]
    if foreign:
        raise Unfit(
            f"has columns of types that only another program knows: {', '.join(foreign)}. Change the file."
        )
    ordered = [e.name for e in fields if pa.types.is_dictionary(e.type) and e.type.ordered]
    return Contract(pa.schema(fields), {name: _categories(paths, name) for name in ordered})


def _joint(kind: pa.DataType, files: int) -> pa.DataType:
    """Type of a column over all files: together they may have more categories than a small code can tell."""
    if files > 1 and pa.types.is_dictionary(kind) and kind.index_type.bit_width < 32:
        return pa.dictionary(pa.int32(), kind.value_type, kind.ordered)
    return kind


def _categories(paths: list[Path], name: str) -> list[object]:
    """Categories of an ordered dictionary column, in their order; further ones of later files follow."""
    categories: dict[object, None] = {}
    for path in paths:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                for chunk in file.read_row_group(group, columns=[name])[name].chunks:
                    categories |= dict.fromkeys(chunk.dictionary.to_pylist())
    return list(categories)


def local(file: str) -> Path | None:
    """Path of a file by its address; None where it is in no folder of this machine."""
    address = urlparse(file)
    return Path(unquote(address.path)) if address.scheme in ("", "file") else None
