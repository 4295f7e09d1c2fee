"""Statistics of the columns of published files, computed from these files only.

Each column is read in the order of files and records, and sums are exact, so that the same files give the
same statistics. For a large release only one file of a column is in memory at a time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from microguard.pipelines.description.order_statistics import SAMPLED, Bracket, order_statistics
from microguard.pipelines.description.record_columns import column_type, read_columns

#: Maximum number of distinct values that are listed with their frequencies.
MOST_VALUES = 50
#: Maximum number of values held in memory; with more values, the files are read again for each statistic.
HELD = 500_000
QUARTILES = (0.25, 0.5, 0.75)
#: Squares of numbers of this size, and sums of as many of them as a release has records, are finite; those of
#: its inverse are not 0.
LARGEST_SQUARED = 1e145


@dataclass(frozen=True)
class Numbers:
    """Statistics of the finite values of a numeric column.

    Attributes
    ----------
    minimum, maximum : int or float
    mean, deviation : float
        The deviation has ddof=1 and is 0 for a single value; None if it is larger than any double.
    quartiles : tuple of float
        Smallest values with at least 25, 50 and 75 percent of the values at or below them.
    total : float or None
        None if it is larger than any double.
    weighted_total, weighted_mean : float or None
        Weighted by the weight of the release, if there is one.
    """

    minimum: int | float
    maximum: int | float
    mean: float
    deviation: float | None
    quartiles: tuple[float, ...]
    total: float | None
    weighted_total: float | None = None
    weighted_mean: float | None = None


@dataclass(frozen=True)
class ColumnStatistics:
    """Statistics of one column.

    Attributes
    ----------
    name, type : str
        Name and Arrow type in the files.
    values, missing : int
        Number of records with and without a value.
    numbers : Numbers or None
    frequencies : tuple of (text, int), or None
        Values with their frequencies, the most frequent first; None for more than `MOST_VALUES` values.
    extremes : tuple of str, or None
        Earliest and latest value of dates and times.
    """

    name: str
    type: str
    values: int
    missing: int
    numbers: Numbers | None = None
    frequencies: tuple[tuple[str, int], ...] | None = None
    extremes: tuple[str, str] | None = None


def column_statistics(
    files: Sequence[Path],
    name: str,
    *,
    weight: str | None = None,
    listed: bool = True,
    partition: pa.Field | None = None,
) -> ColumnStatistics:
    """Compute the statistics of one column of Parquet files with the same schema.

    Parameters
    ----------
    files : sequence of Path
        Files in order; at least one.
    name : str
    weight : str, optional
        Column of sampling weights.
    listed : bool
        Whether values may be listed.
    partition : pyarrow.Field, optional
        Partition column, whose values are in the names of folders.
    """
    kind = column_type(files[0], name, partition)
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    values = missing = 0
    frequencies: Counter[Any] | None = Counter() if listed and _can_be_listed(plain) else None
    extremes: list[pa.Scalar] = []
    for column in _columns(files, name, plain, partition):
        values, missing = values + len(column) - column.null_count, missing + column.null_count
        if frequencies is not None:
            frequencies = _add_counts(frequencies, column)
        if _is_moment(plain):
            ends = pc.min_max(column)
            extremes += [each for each in (ends["min"], ends["max"]) if each.is_valid]
    return ColumnStatistics(
        name,
        str(kind),
        values,
        missing,
        _numbers(files, name, plain, weight, partition, values) if _is_number(plain) else None,
        None if frequencies is None else tuple((display_text(v), n) for v, n in _ordered(frequencies)),
        _first_and_last(extremes) if extremes else None,
    )


def display_text(value: Any) -> str:
    """Return a value as text for display."""
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    return str(value)


def _columns(
    files: Sequence[Path], name: str, plain: pa.DataType, partition: pa.Field | None
) -> Iterator[pa.ChunkedArray]:
    for path in files:
        column = read_columns(path, [name], partition)[name]
        yield column.cast(plain) if pa.types.is_dictionary(column.type) else column


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_time(kind))


def _first_and_last(moments: list[pa.Scalar]) -> tuple[str, str]:
    """Return the earliest and latest value as text. Arrow formats them, because Python does not support all
    years.
    """
    ends, kind = pc.min_max(pa.array(moments)), moments[0].type
    # values with a time zone become UTC
    bare = pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind
    first, last = (ends[end].cast(bare).cast(pa.string()).as_py() for end in ("min", "max"))
    return str(first), str(last)


def _can_be_listed(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
    )


def _add_counts(frequencies: Counter[Any], column: pa.ChunkedArray) -> Counter[Any] | None:
    """Add the frequencies in another file; return None if there are too many distinct values."""
    counted = pc.value_counts(column.drop_null())
    if len(counted) > MOST_VALUES:
        return None
    for each in counted.to_pylist():
        frequencies[each["values"]] += each["counts"]
    return frequencies if len(frequencies) <= MOST_VALUES else None


def _ordered(frequencies: Counter[Any]) -> list[tuple[Any, int]]:
    return sorted(frequencies.items(), key=lambda item: (-item[1], item[0]))


def _numbers(
    files: Sequence[Path],
    name: str,
    kind: pa.DataType,
    weight: str | None,
    partition: pa.Field | None,
    records: int,
) -> Numbers | None:
    """Compute the statistics of finite values, file by file if there are many records."""
    read: Callable[[], Iterable[_Part]] = partial(
        _finite, files, name, kind, weight if weight != name else None, partition
    )
    if records <= HELD:
        read = partial(list, list(read()))
    number, extremes, totals, masses, weighted, sample = 0, [], [], [], [], []
    step = max(1, records // SAMPLED)
    for part in read():
        sample.append(part.values[::step].copy())
        number += len(part.values)
        extremes += part.extremes
        with np.errstate(over="ignore", invalid="ignore"):  # not used then
            totals.append(float(part.values.sum()))
        if part.weights is not None:
            masses.append(float(part.weights.sum()))
            with np.errstate(over="ignore", invalid="ignore"):
                weighted.append(float((part.weights * part.values).sum()))
    if number == 0:
        return None
    size = float(max(map(abs, extremes))) or 1.0
    # Squares above 1e154 are too large for a double, below 1e-162 too small: then the largest is the unit.
    unit = 1.0 if 1.0 / LARGEST_SQUARED < size < LARGEST_SQUARED else size
    total = math.fsum(totals) if unit == 1.0 else math.fsum(float((p.values / unit).sum()) for p in read())
    mean = total / number
    places = [max(0, math.ceil(share * number) - 1) for share in QUARTILES]
    ordered = np.sort(np.concatenate(sample))
    brackets = [Bracket(ordered, place, number) for place in places]
    squares = []
    for part in read():
        squares.append(float(((part.values / unit - mean) ** 2).sum()))
        for bracket in brackets:
            bracket.add(part.values)
    quartiles = [bracket.found() for bracket in brackets]
    missed = [place for place, value in zip(places, quartiles, strict=True) if value is None]
    selected = iter(order_statistics(lambda: (part.values for part in read()), missed))
    summed = bool(weighted) and size < LARGEST_SQUARED
    weighted_total, mass = math.fsum(weighted if summed else ()), math.fsum(masses)
    known = summed and math.isfinite(weighted_total) and mass > 0
    return Numbers(
        minimum=_json_number(min(extremes)),
        maximum=_json_number(max(extremes)),
        mean=mean * unit,
        deviation=_if_finite(math.sqrt(math.fsum(squares) / (number - 1)) * unit if number > 1 else 0.0),
        quartiles=tuple(next(selected) if value is None else value for value in quartiles),
        total=_if_finite(total * unit),
        weighted_total=weighted_total if known else None,
        weighted_mean=weighted_total / mass if known else None,
    )


def _if_finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


@dataclass(frozen=True)
class _Part:
    """Finite values of a file, (m,), with their weights and exact extremes."""

    values: np.ndarray
    weights: np.ndarray | None
    extremes: list[Any]


def _finite(
    files: Sequence[Path], name: str, kind: pa.DataType, weight: str | None, partition: pa.Field | None
) -> Iterator[_Part]:
    """Yield the finite values of one file after the other."""
    for path in files:
        table = read_columns(path, [name, *([weight] if weight else [])], partition)
        number = table[name].cast(pa.float64(), safe=False)
        inside = pc.fill_null(pc.is_finite(number), False)
        ends = pc.min_max((number if pa.types.is_floating(kind) else table[name]).filter(inside))
        weights = table[weight].cast(pa.float64(), safe=False).filter(inside).to_numpy() if weight else None
        extremes = [each.as_py() for each in (ends["min"], ends["max"]) if each.is_valid]
        yield _Part(number.filter(inside).to_numpy(), weights, extremes)


def _json_number(value: Any) -> int | float:
    return float(value) if isinstance(value, Decimal) else value
