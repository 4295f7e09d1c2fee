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
        Counts over all records how well columns predict others; None if the sample is the file.
    """

    codes: Mapping[str, np.ndarray]
    numbers: _Numbers
    whole_numbers: Collection[str]
    of_digits: Sequence[_Numbers]
    whole: Callable[[Sequence[Dependency]], Mapping[Dependency, Guessing]] | None


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
    """Counts over all records of a larger file: one pass for the columns, and one for all pairs."""

    def __init__(
        self, coded: DataFrame, records: int, place: Mapping[str, str], nominal: Collection[str]
    ) -> None:
        self._coded, self._records, self._place, self._nominal = coded, records, place, nominal

    def guessing(self, pairs: Sequence[Dependency]) -> dict[Dependency, Guessing]:
        """Count how well columns predict variables; leave out pairs whose column rarely repeats a value, and
        those whose variable has one value.
        """
        if not pairs:
            return {}
        repeated, most_frequent = self._sizes(
            {name for each in pairs for name in (each.column, each.determines)}
        )
        judged_pairs = [
            pair
            for pair in pairs
            if repeated[pair.column] >= REPEATED_SHARE * self._records
            and most_frequent[pair.determines] < self._records
        ]
        rows = {row[0]: row[1:] for row in self._counts(judged_pairs)}
        return {
            pair: Guessing(self._records, most_frequent[pair.determines], *rows[i])
            for i, pair in enumerate(judged_pairs)
        }

    def _counts(self, pairs: Sequence[Dependency]) -> Sequence[tuple[int, ...]]:
        """Return for each pair its number and the counts of `Guessing` from `judged` on."""
        if not pairs:
            return []
        values = [
            (column(self._place[each.column]), column(self._place[each.determines]), each.determines)
            for each in pairs
        ]
        structs = [
            f.struct(
                f.lit(i).alias("pair"),
                f.lit(name in self._nominal).alias("nominal"),
                given.alias("given"),
                protected.alias("protected"),
            )
            for i, (given, protected, name) in enumerate(values)
        ]
        of_pair = ["pair", "nominal"]
        cells = self._coded.select(f.inline(f.array(*structs))).groupBy(*of_pair, "given", "protected")
        by_value = (
            cells.agg(f.count(f.lit(1)).alias("n"))
            .groupBy(*of_pair, "given")
            .agg(
                f.sum("n").alias("n"),
                f.max("n").alias("most"),
                f.max_by("protected", f.struct("n", "protected")).alias("goes_with"),
            )
        )
        total, most = f.col("n"), f.col("most")
        often, again, alike = total >= OFTEN, total > 1, most >= NEARLY * total
        wrong = total - f.when(guessed_right(total, most), most).otherwise(0)
        judged = f.when(f.col("nominal"), again).otherwise(often)
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
        of_guesses = by_value.groupBy("pair", "goes_with").agg(*counts)
        sums = [f.max(f"c{i}") if i == 4 else f.sum(f"c{i}") for i in range(7)]
        return of_guesses.groupBy("pair").agg(*sums, f.count_if(f.col("c0") > 0)).collect()

    def _sizes(self, names: Collection[str]) -> tuple[dict[str, int], dict[str, int]]:
        """Return for each column the number of records with a repeated value, and with the most frequent
        value.
        """
        order = sorted(names)
        structs = [
            f.struct(f.lit(i).alias("column"), column(self._place[name]).alias("value"))
            for i, name in enumerate(order)
        ]
        sizes = self._coded.select(f.inline(f.array(*structs))).groupBy("column", "value").count()
        repeated = f.sum(f.when(f.col("count") > 1, f.col("count")).otherwise(0))
        rows = sizes.groupBy("column").agg(repeated, f.max("count")).collect()
        return {order[i]: many for i, many, _ in rows}, {order[i]: most for i, _, most in rows}
