"""Columns of a file compared on the driver: codes and numbers of a sample, counts over all records."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.row_hash import content_of
from microguard.pipelines.intake.numeric_parsing import NOT_A_NUMBER, digits_as_numbers, readable_numbers
from microguard.pipelines.measures.attribute_disclosure.conditional_mode import (
    NEARLY,
    OFTEN,
    REPEATED_SHARE,
    Dependency,
    Guessing,
    guessed_right,
)
from microguard.schemas.specification.model import Specification
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

#: Number of records compared on the driver, drawn by a hash of their content; they refute nearly every pair.
GLANCE = 20_000
_PLACES = 1 << 30
_Numbers = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class ComparedColumns:
    """Values of columns in a sample of the records, or in all of a small file.

    Attributes
    ----------
    codes : mapping of name to (n,) integer array
        Values numbered from 0; a missing value is a value.
    numbers : mapping of name to (n,) float array
        Columns whose known values are mostly numbers; NaN is missing.
    whole_numbers : set of str
        Columns of which every known value is a number.
    of_digits : sequence of such mappings
        Numbers of text columns, read from their digits in two orders.
    whole : callable or None
        Counts over all records how well a column predicts another one; None if the sample is the file.
    """

    codes: Mapping[str, np.ndarray]
    numbers: _Numbers
    whole_numbers: Collection[str]
    of_digits: Sequence[_Numbers]
    whole: Callable[[Dependency], Guessing | None] | None


def compared_columns(
    frame: DataFrame,
    columns: Mapping[str, Sequence[str]],
    texts: Sequence[str],
    nominal: Collection[str],
    specification: Specification,
    records: int,
) -> ComparedColumns:
    """Read the columns of a sample of the records.

    Parameters
    ----------
    frame : DataFrame
    columns : mapping of name to column names
        Columns that are compared: one of the frame, or several whose joint values are.
    texts : sequence of str
        Columns whose texts are read from their digits, too.
    nominal : collection of str
        Determined columns whose values are categories.
    specification : Specification
    records : int
        Number of records of the frame.
    """
    place = {name: f"h{position}" for position, name in enumerate(columns)}
    hashes = [f.xxhash64(*content_of(list(each))).alias(place[name]) for name, each in columns.items()]
    few = records <= GLANCE
    seen = frame if few else frame.where(_drawn(frame.columns, records))
    single = [name for name, each in columns.items() if list(each) == [name]]
    readings = _readings(seen, single, list(texts), specification)
    read = {f"n{i}": number for i, number in enumerate(chain(*[each.values() for each in readings]))}
    numbers = [number.alias(alias) for alias, number in read.items()]
    glance = seen.select(*hashes, *numbers).toArrow().to_pandas()
    aliases = iter(read)
    plain, *of_digits = [
        {name: glance[next(aliases)].to_numpy(np.float64, na_value=np.nan) for name in each}
        for each in readings
    ]
    return ComparedColumns(
        {name: np.unique(glance[place[name]], return_inverse=True)[1] for name in columns},
        {name: _finite(number) for name, number in plain.items() if _mostly_numbers(number)},
        {name for name, number in plain.items() if not np.isin(NOT_A_NUMBER, number)},
        of_digits,
        None if few else _Whole(frame.select(hashes), records, place, nominal).guessing,
    )


def _readings(
    frame: DataFrame, names: list[str], as_they_are: list[str], specification: Specification
) -> list[dict[str, Column]]:
    """Return the columns as numbers; a text gives two numbers, from its digits in two orders."""
    of_texts = digits_as_numbers(frame, as_they_are)
    in_orders = [{name: orders[i] for name, orders in of_texts.items()} for i in range(2)]
    return [readable_numbers(frame, names, specification), *in_orders]


def _mostly_numbers(number: np.ndarray) -> bool:
    """Return whether most values are numbers; marks for missing values do not make the column categorical."""
    return 2 * int(np.isfinite(number).sum()) > int((~np.isnan(number)).sum())


def _finite(number: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(number), number, np.nan)


def _drawn(names: list[str], records: int) -> Column:
    """Draw about `GLANCE` records by a hash of their content; the result does not depend on the
    partitioning.
    """
    drawn = f.pmod(f.xxhash64(f.lit("glance"), *content_of(names)), f.lit(_PLACES))
    return drawn < math.ceil(_PLACES * GLANCE / records)


class _Whole:
    """Counts over all records of a larger file, each computed once."""

    def __init__(
        self, coded: DataFrame, records: int, place: Mapping[str, str], nominal: Collection[str]
    ) -> None:
        self._coded, self._records, self._place, self._nominal = coded, records, place, nominal
        self._seldom: dict[str, bool] = {}
        self._commonest: dict[str, int] = {}

    def guessing(self, pair: Dependency) -> Guessing | None:
        """Count how well a column predicts a variable; return None if the column's values are rarely
        repeated, or the variable has one value.
        """
        given, protected = self._place[pair.column], self._place[pair.determines]
        if self._most(protected) == self._records or self._seldom_repeats(given):
            return None
        cells = self._coded.groupBy(column(given), column(protected)).agg(f.count(f.lit(1)).alias("n"))
        values = cells.groupBy(column(given)).agg(
            f.sum("n").alias("n"),
            f.max("n").alias("most"),
            f.max_by(column(protected), f.struct("n", column(protected))).alias("goes_with"),
        )
        total, most = f.col("n"), f.col("most")
        often, again, alike = total >= OFTEN, total > 1, most >= NEARLY * total
        wrong = total - f.when(guessed_right(total, most), most).otherwise(0)
        judged = again if pair.determines in self._nominal else often
        kept = judged & (alike | ~often)
        counts = [
            f.sum(f.when(which, counted).otherwise(0)).alias(f"c{i}")
            for i, (which, counted) in enumerate(
                [
                    (judged, total),
                    (judged, wrong),
                    (kept, total),
                    (kept, wrong),
                    (kept, most),
                    (again, total - most),
                    (again & alike, total),
                ]
            )
        ]
        of_values = values.groupBy("goes_with").agg(*counts)
        sums = [f.max(f"c{i}") if i == 4 else f.sum(f"c{i}") for i in range(7)]
        row = of_values.agg(*sums, f.count_if(f.col("c0") > 0)).first()
        assert row is not None
        return Guessing(self._records, self._most(protected), *row)

    def _seldom_repeats(self, given: str) -> bool:
        """Return whether too few records have a repeated value for the column to determine anything."""
        if given not in self._seldom:
            sizes = self._coded.groupBy(column(given)).agg(f.count(f.lit(1)).alias("n"))
            row = sizes.where("n > 1").agg(f.sum("n")).first()
            assert row is not None
            self._seldom[given] = (row[0] or 0) < REPEATED_SHARE * self._records
        return self._seldom[given]

    def _most(self, protected: str) -> int:
        """Return the number of records that have a variable's most frequent value."""
        if protected not in self._commonest:
            row = self._coded.groupBy(column(protected)).count().agg(f.max("count")).first()
            assert row is not None
            self._commonest[protected] = row[0]
        return self._commonest[protected]
