"""Keyed hashes of units, which link a unit across releases without storing its identifier."""

from __future__ import annotations

import hashlib
import hmac

import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.compat import of_texts
from microguard.pipelines.engine.row_hash import content_of
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: Columns with the keyed hash of the unit, and with a hash of the record's published columns.
UNIT, ROW = "__unit", "__row"
KEY_BYTES = 16
#: Largest integer below which double precision represents all integers.
LARGEST_WHOLE = 2.0**53


def with_unit_key(frame: DataFrame, unit: str, content: list[str], secret: bytes) -> DataFrame:
    """Add `UNIT`, a keyed hash of the unit, and `ROW`, a hash of the published columns.

    Parameters
    ----------
    frame : DataFrame
    unit : str
        Column that identifies the unit; it is hashed as `unit_text`.
    content : list of str
        Published columns, with the values of the input.
    secret : bytes
        The agency's key. It is part of the pickled task and does not appear in a query plan.
    """
    derived = hmac.new(secret, b"units of a series", hashlib.sha256).digest()
    key = keyed_hash(unit_text(unit, frame), derived)
    return frame.withColumns({UNIT: key, ROW: f.xxhash64(*content_of(content))})


def keyed_hash(text: Column, secret: bytes) -> Column:
    """Return the keyed hash of a text; the key is pickled with the task and is not part of a query plan."""

    def keyed(texts: pa.Array) -> pa.Array:
        return pa.array([unit_key(text, secret) for text in texts.to_pylist()], pa.binary())

    hashed: Column = of_texts(keyed, t.BinaryType())(text)
    return hashed


def unit_text(unit: str, frame: DataFrame) -> Column:
    """Return the identifier of a unit as a text that does not depend on its type: 7, 7.0 and "7" are equal.

    Some tools convert integer identifiers to floating point if one of them is missing, so the type can change
    between releases.
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
    """Return the keyed hash of one unit (BLAKE2b; Aumasson, Neves, Wilcox-O'Hearn and Winnerlein 2013)."""
    if text is None:
        return None
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=derived, digest_size=KEY_BYTES).digest()
