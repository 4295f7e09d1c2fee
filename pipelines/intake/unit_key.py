"""Unit keys: what tells units apart from night to night, without their identifiers being stored."""

from __future__ import annotations

import hashlib
import hmac

import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.row_hash import content_of
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: Columns of what is known of a record's unit: its key, and a hash of what would be published of the record.
UNIT, ROW = "__unit", "__row"
KEY_BYTES = 16
#: Whole numbers beyond it are not told apart by floating-point numbers.
LARGEST_WHOLE = 2.0**53


def with_unit_key(frame: DataFrame, unit: str, content: list[str], secret: bytes) -> DataFrame:
    """Records with `UNIT`, a keyed hash of the unit, and `ROW`, a hash of what would be published of them.

    Parameters
    ----------
    frame : DataFrame
    unit : str
        Column that identifies the unit, taken as `unit_text`.
    content : list of str
        Published columns as they were read.
    secret : bytes
        The agency's key. It travels with the task and stands in no plan that Spark shows.
    """
    derived = hmac.new(secret, b"units of a series", hashlib.sha256).digest()

    def keyed(texts: pa.Array) -> pa.Array:
        return pa.array([unit_key(text, derived) for text in texts.to_pylist()], pa.binary())

    hashed = f.arrow_udf(keyed, t.BinaryType())  # type: ignore[call-overload]
    key: Column = hashed(unit_text(unit, frame))
    return frame.withColumns({UNIT: key, ROW: f.xxhash64(*content_of(content))})


def unit_text(unit: str, frame: DataFrame) -> Column:
    """A unit's identifier as text, the same in whatever type a file has it: 7, 7.0 and "7" are one unit.

    A night's identifiers become floating-point numbers where a tool met one that was missing.
    """
    value, kind = column(unit), frame.schema[unit].dataType
    text = value.cast("string")
    if isinstance(kind, (t.FloatType, t.DoubleType)):
        whole = value.try_cast("long")
        return f.when((whole == value) & (f.abs(value) < LARGEST_WHOLE), whole.cast("string")).otherwise(text)
    if isinstance(kind, t.DecimalType) and kind.scale:
        whole = value.try_cast(t.DecimalType(kind.precision, 0))
        return f.when(whole == value, whole.cast("string")).otherwise(text)
    return text


def unit_key(text: str | None, derived: bytes) -> bytes | None:
    """Keyed hash of one unit (BLAKE2b; Aumasson, Neves, Wilcox-O'Hearn and Winnerlein 2013)."""
    if text is None:
        return None
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=derived, digest_size=KEY_BYTES).digest()
