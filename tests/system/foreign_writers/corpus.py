"""Build the columns for the tests of foreign writers: every type, with each value at least three times."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa

#: Number of records, and number of records with equal values.
RECORDS, ALIKE = 36, 3
_DAY, _OLD = dt.date(2020, 2, 29), dt.date(1890, 7, 1)
_MOMENT, _BEFORE = dt.datetime(2020, 2, 29, 23, 59, 59, 123456), dt.datetime(1890, 7, 1, 1, 2, 3)
_SECOND = _MOMENT.replace(microsecond=0)


def _column(values, kind, *, nulls=True):
    """Return a column that repeats these values and NULL."""
    values = [*values, None] if nulls else list(values)
    return pa.array([values[i // ALIKE % len(values)] for i in range(RECORDS)], kind)


def columns():
    """Return an Arrow column of every type, by the name of the type."""
    utc, paris = "UTC", "Europe/Paris"
    text = _column(["a", "", "é", "007"], pa.string())
    codes = text.dictionary_encode().indices
    whole = _column([5, -7], pa.int64())
    cents = [Decimal("1.10"), Decimal("-3.33")]
    kinds = {
        "bool": _column([True, False], pa.bool_()),
        "int8": _column([-128, 127], pa.int8()),
        "int16": _column([-(2**15), 2**15 - 1], pa.int16()),
        "int32": _column([-(2**31), 2**31 - 1], pa.int32()),
        "int64": _column([-(2**63), 2**63 - 1], pa.int64()),
        "uint8": _column([0, 255], pa.uint8()),
        "uint16": _column([0, 2**16 - 1], pa.uint16()),
        "uint32": _column([0, 2**32 - 1], pa.uint32()),
        "uint64": _column([0, 2**63 + 5], pa.uint64()),
        "float16": _column([1.5, 0.5], pa.float32()).cast(pa.float16()),
        "float32": _column([1.5, 0.1, -0.0, 0.0, float("nan"), float("inf")], pa.float32()),
        "float64": _column([1.5, 0.1, -0.0, 0.0, float("nan"), -float("inf")], pa.float64()),
        "text": text,
        "large_text": text.cast(pa.large_string()),
        "text_view": text.cast(pa.string_view()),
        "category": text.dictionary_encode(),
        "ordered": pa.DictionaryArray.from_arrays(codes, ["z", "b", "a", "c"], ordered=True),
        "category_of_numbers": whole.dictionary_encode(),
        "bytes": _column([b"a", b"\xff\x00"], pa.binary()),
        "fixed_bytes": _column([b"ab", b"\xff\x00"], pa.binary(2)),
        "date": _column([_DAY, _OLD], pa.date32()),
        "date64": _column([_DAY, _OLD], pa.date64()),
        "seconds": _column([_SECOND, _BEFORE], pa.timestamp("s")),
        "milliseconds": _column([_SECOND, _BEFORE], pa.timestamp("ms")),
        "microseconds": _column([_MOMENT, _BEFORE], pa.timestamp("us")),
        "nanoseconds": _column([1, 10**18 + 1], pa.timestamp("ns")),
        "instant": _column([_MOMENT, _BEFORE], pa.timestamp("us", utc)),
        "instant_nanoseconds": _column([1, 10**18 + 1], pa.timestamp("ns", utc)),
        "zoned": _column([_MOMENT, _BEFORE], pa.timestamp("us", paris)),
        "time": _column([dt.time(1, 2, 3), dt.time(23, 59, 59)], pa.time64("us")),
        "time32": _column([dt.time(1, 2, 3)], pa.time32("ms")),
        "duration": _column([1, -(10**9)], pa.duration("us")),
        "decimal9": _column(cents, pa.decimal128(9, 2)),
        "decimal18": _column(cents, pa.decimal128(18, 2)),
        "decimal38": _column([*cents, Decimal("1" * 36 + ".10")], pa.decimal128(38, 2)),
        "decimal256": _column(cents, pa.decimal256(50, 2)),
        "nothing": pa.nulls(RECORDS),
        "list": _column([[1, 2], []], pa.list_(pa.int32())),
        "struct": _column([{"a": 1}], pa.struct([("a", pa.int32())])),
    }
    return {f"a_{name}": column for name, column in kinds.items()}


def not_published(kind):
    """Return whether a type must be refused, because Spark cannot read it or a release cannot contain it."""
    return (
        pa.types.is_time(kind)
        or pa.types.is_float16(kind)
        or pa.types.is_decimal256(kind)
        or pa.types.is_null(kind)
        or pa.types.is_nested(kind)
        or isinstance(kind, pa.BaseExtensionType)
    )


def in_bytes(name):
    """Return whether values of a type are bytes without text, which are neither categories nor regions."""
    return name.endswith("bytes")


def numbers():
    """Return positive finite numbers of every type that can be a weight or a numeric quasi-identifier."""
    whole = _column([1, 2, 3, 4], pa.int64(), nulls=False)
    kinds = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float32", "float64"]
    return {f"number_{kind}": whole.cast(kind) for kind in kinds} | {
        "number_decimal9": whole.cast(pa.decimal128(21, 2)).cast(pa.decimal128(9, 2)),
        "number_decimal38": whole.cast(pa.decimal128(38, 2)),
    }


def regions():
    """Return two regions in every type that a region can have."""
    times = RECORDS // ALIKE // 2
    return {
        name.replace("a_", "region_", 1): pa.concat_arrays(
            [column[:ALIKE]] * times + [column[ALIKE : 2 * ALIKE]] * times
        )
        for name, column in columns().items()
        if not not_published(column.type) and not pa.types.is_floating(column.type) and not in_bytes(name)
    }
