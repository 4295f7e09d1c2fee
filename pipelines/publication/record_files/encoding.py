"""Encode records for publication: the types of the contract, and no metadata of another file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def encoded(table: pa.Table, schema: pa.Schema, categories: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Cast records of Spark to the types of the contract, without foreign metadata."""
    arrays = [_typed(table[entry.name], entry.type, categories.get(entry.name)) for entry in schema]
    plain = pa.schema([pa.field(entry.name, entry.type, entry.nullable) for entry in schema])
    return pa.table(arrays, schema=plain)


def _typed(array: pa.ChunkedArray, kind: pa.DataType, order: Sequence[Any] | None) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(kind):
        return array.cast(kind)
    values = array.cast(kind.value_type).combine_chunks()
    occurring = values.unique().drop_null()
    if order is None:
        categories = occurring.sort()
    else:
        present = set(occurring.to_pylist())
        categories = pa.array([value for value in order if value in present], kind.value_type)
    codes = pc.index_in(values, value_set=categories).cast(kind.index_type)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(codes, categories, ordered=kind.ordered)])
