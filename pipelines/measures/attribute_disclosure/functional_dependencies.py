"""Unmodified columns that determine a protected variable, for example activity A88, which determines A21."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from itertools import chain

import numpy as np
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.row_hash import content_of
from microguard.pipelines.intake.numeric_parsing import NOT_A_NUMBER, digits_as_numbers, readable_numbers
from microguard.pipelines.measures.attribute_disclosure.arithmetic import computed
from microguard.pipelines.measures.attribute_disclosure.conditional_mode import (
    NEARLY,
    OFTEN,
    REPEATED_SHARE,
    Dependency,
    Guessing,
    dependencies_among,
    guessed_right,
)
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.unmodified_columns import modified_variables, unmodified_columns
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

#: Number of records compared on the driver, drawn by a hash of their content; they refute nearly every pair.
GLANCE = 20_000
_PLACES = 1 << 30


def dependencies(frame: DataFrame, specification: Specification, records: int) -> list[Dependency]:
    """Find the dependencies among all pairs: a sample refutes most, the whole file decides the remaining
    ones.

    Parameters
    ----------
    frame : DataFrame
        The original records.
    specification : Specification
    records : int
        Number of records of the frame.
    """
    pairs = [
        Dependency(name, protected)
        for name in unmodified_columns(specification)
        for protected in modified_variables(specification)
        if name != specification.region or protected in specification.nominal
    ]
    if not pairs:
        return []
    names = list(dict.fromkeys([pair.column for pair in pairs] + [pair.determines for pair in pairs]))
    place = {name: f"h{position}" for position, name in enumerate(names)}
    hashes = [f.xxhash64(*content_of([name])).alias(place[name]) for name in names]
    few = records <= GLANCE
    seen = frame if few else frame.where(_drawn(frame.columns, records))
    as_they_are = [name for name in unmodified_columns(specification) if name in place]
    readings = _readings(seen, names, as_they_are, specification)
    read = {f"n{i}": number for i, number in enumerate(chain(*[each.values() for each in readings]))}
    numbers = [number.alias(alias) for alias, number in read.items()]
    glance = seen.select(*hashes, *numbers).toArrow().to_pandas()
    codes = {name: np.unique(glance[place[name]], return_inverse=True)[1] for name in names}
    whole = None if few else _Whole(frame.select(hashes), records, place, specification.nominal).guessing
    found = dependencies_among(pairs, codes, specification.nominal, specification.region, whole)
    aliases = iter(read)
    plain, *of_digits = [
        {name: glance[next(aliases)].to_numpy(np.float64, na_value=np.nan) for name in each}
        for each in readings
    ]
    whole_numbers = {name for name, number in plain.items() if not np.isin(NOT_A_NUMBER, number)}
    plain = {name: _finite(number) for name, number in plain.items() if _mostly_numbers(number)}
    modified = modified_variables(specification)
    protected = {name: plain[name] for name in specification.numeric if name in plain and name in modified}
    categories = {name: codes[name] for name in specification.nominal if name in modified}
    among = {name: codes[name] for name in as_they_are}
    for reading in (plain, *of_digits):
        amounts = {
            name: number
            for name, number in reading.items()
            if name in among
            and name != specification.region
            and (reading is plain or name not in whole_numbers)
        }
        found += computed(amounts, protected, categories, found, among)
    return found


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
        repeated.
        """
        given, protected = self._place[pair.column], self._place[pair.determines]
        if self._seldom_repeats(given):
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
        row = of_values.agg(*[f.max(f"c{i}") if i == 4 else f.sum(f"c{i}") for i in range(7)]).first()
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
