"""Classes of Arrow types that a draft distinguishes, and the SQL by which DuckDB loads them."""

from __future__ import annotations

import pyarrow as pa


def is_text(type: pa.DataType) -> bool:
    """Return whether values of this type are text; dictionary types are not."""
    return pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type)


def is_number(type: pa.DataType) -> bool:
    """Return whether values of this type are numbers; booleans are not."""
    return pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type)


def is_flat(type: pa.DataType) -> bool:
    """Return whether a draft can profile a column of this type; nested and binary columns are omitted, and so
    are numbers of 16 bits, which DuckDB does not load.
    """
    if pa.types.is_float16(type):
        return False
    if pa.types.is_dictionary(type):
        return is_text(type.value_type)
    time = pa.types.is_date(type) or pa.types.is_timestamp(type)
    return is_number(type) or time or is_text(type) or pa.types.is_boolean(type)


def as_loaded(label: str, type: pa.DataType) -> str:
    """Return the SQL that loads a column as a run does: NaN becomes NULL, and a category becomes text."""
    if pa.types.is_floating(type):
        return f"CASE WHEN isnan({label}) THEN NULL ELSE {label} END AS {label}"
    return f"CAST({label} AS VARCHAR) AS {label}" if pa.types.is_dictionary(type) else label
