"""Dates and times as text of ISO 8601, and back, of any year.

Arrow writes years with its own calendar, which ends at 32767, and reads those of four digits only. Numpy has
all years. A text is read back only if it is exactly the text of its value.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: The first and the last day of the years of four digits, from 1970-01-01.
_FIRST, _LAST = -719_528, 2_932_896
_DAYS = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}


def is_moment(kind: pa.DataType) -> bool:
    """Return whether a type is one of dates or timestamps."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def is_far(column: pa.Array) -> bool:
    """Return whether a value has a year outside of 0 to 9999."""
    ends = pc.min_max(_numbers(column)).as_py()
    day = _DAYS[column.type.unit] if pa.types.is_timestamp(column.type) else 1
    return any(each is not None and not _FIRST <= each // day <= _LAST for each in ends.values())


def text_of_moments(column: pa.Array) -> pa.Array:
    """Return dates or timestamps as text: ``2020-02-29``, ``2020-02-29T23:59:59.000``, ``...Z`` in UTC."""
    zone = "Z" if pa.types.is_timestamp(column.type) and column.type.tz is not None else ""
    if not is_far(column):
        if pa.types.is_date(column.type):
            return pc.strftime(column.cast(pa.date32()), "%Y-%m-%d")
        moments = column.cast(pa.int64()).cast(pa.timestamp(column.type.unit))
        return pc.strftime(moments, f"%Y-%m-%dT%H:%M:%S{zone}")
    numbers = _numbers(column)
    known = numbers.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64).view(_of_numpy(column.type))
    text = pa.array(np.datetime_as_string(known), pa.string())
    # numpy counts the sign among the four digits of a year
    text = pc.replace_substring_regex(text, "^-([0-9]{3})-", "-0\\1-")
    text = pc.binary_join_element_wise(text, pa.scalar(zone), "")
    return pc.if_else(numbers.is_valid(), text, pa.scalar(None, pa.string()))


def moments_of(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the dates or timestamps of `text_of_moments`.

    Raises
    ------
    ArrowInvalid
        If a text is not exactly that of its value.
    """
    whole = text.fill_null("1970-01-01")
    try:
        known = np.array([each.removesuffix("Z") for each in whole.to_pylist()], _of_numpy(kind))
        numbers = pa.array(known.astype(np.int64), pa.int64(), mask=text.is_null().to_numpy(False))
    except ValueError as error:
        raise pa.ArrowInvalid("no dates or times") from error
    storage = numbers.cast(pa.int32()).cast(pa.date32()) if pa.types.is_date(kind) else numbers
    found = storage.cast(kind)
    if np.isnat(known).any() or not text_of_moments(found).equals(text):
        raise pa.ArrowInvalid("other texts than those of the values")
    return found


def _numbers(column: pa.Array) -> pa.Array:
    """Return the days or ticks since 1970 as 64-bit integers."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.date32()).cast(pa.int32())
    return column.cast(pa.int64())


def _of_numpy(kind: pa.DataType) -> str:
    return f"datetime64[{kind.unit if pa.types.is_timestamp(kind) else 'D'}]"
