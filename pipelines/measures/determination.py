"""Columns published as they are that give a protected variable away: activity A88 determines A21.

Nearly all is as bad as all: one miscoded record in a million hides nothing of the others. Of the region it is
not: no class crosses it, so what is alike in all of it is published in any case. And two columns may tell
what neither does: the years of birth and of the survey, the age.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from pipelines.engine.column_names import column
from pipelines.engine.row_hash import content_of
from schemas.specification.model import Specification

#: Records looked at on the driver, drawn by their content: enough to refute nearly every pair.
GLANCE = 20_000
#: A column whose values mostly occur once (an amount, a weight) determines everything in the file without
#: telling a reader anything; below this share of records with a repeated value, it is not a dependency.
REPEATED_SHARE = 0.5
#: Records of a value from which a reader can tell what goes with it, where it does not always or is a number.
OFTEN = 10
#: Of what guessing the commonest value leaves wrong, the share that a column must get right to determine a
#: variable (lambda; Goodman and Kruskal 1954).
NEARLY = 0.95
#: Beyond chance, what a glance must find wrong to refute: twice of what is allowed, and so many records.
MARGIN = 30
#: Columns that guess a protected variable best alone and are tried together with every other: all pairs grow
#: with the square of the columns.
TRIED_TOGETHER = 3
_PLACES = 1 << 30


@dataclass(frozen=True)
class Dependency:
    """A published column in which (nearly) every value goes with one value of a protected variable.

    Attributes
    ----------
    column, determines : str
    beside : str
        Another column, without which it does not; empty where it does alone.
    """

    column: str
    determines: str
    beside: str = ""

    def __str__(self) -> str:
        both = f"{self.column} and {self.beside} are published as they are and together determine"
        alone = f"{self.column} is published as it is and determines"
        return f"{both if self.beside else alone} the protected {self.determines}"


@dataclass(frozen=True)
class _Guessing:
    """How well a protected variable is guessed by a column.

    Attributes
    ----------
    records, commonest : int
        Of the file, and those that have the commonest value of the variable.
    repeated, wrong : int
        Records whose value of the column occurs again; those among them that have another value of the
        variable than most of the records with that value.
    often, often_wrong : int
        The same of values that `OFTEN` records have.
    """

    records: int
    commonest: int
    repeated: int
    wrong: int
    often: int
    often_wrong: int

    @property
    def _left(self) -> float:
        """Share of the records that guessing the commonest value gets wrong."""
        return 1.0 - self.commonest / max(self.records, 1)

    @property
    def always(self) -> bool:
        """Whether every value of the column goes with one value of the variable."""
        varies = self.commonest < self.records
        return varies and self.wrong == 0 and self.repeated >= REPEATED_SHARE * self.records

    @property
    def often_enough(self) -> bool:
        """Whether most records have a value from which a reader can tell."""
        return self.often >= REPEATED_SHARE * self.records

    @property
    def right(self) -> float:
        """Share that the column gets right of what the commonest value gets wrong, by values seen often."""
        varies = self.commonest < self.records and self.often > 0
        return 1.0 - self.often_wrong / (self._left * self.often) if varies else 0.0

    @property
    def nearly(self) -> bool:
        """Whether nearly every one does, of values from which a reader can tell."""
        return self.right >= NEARLY and self.often_enough

    def refutes(self) -> bool:
        """Whether these records, of a larger file, show that it does not."""
        return self.wrong > 2.0 * (1.0 - NEARLY) * self._left * self.records + MARGIN


def dependencies(frame: DataFrame, specification: Specification, records: int) -> list[Dependency]:
    """All pairs: a glance at some records refutes most, the whole file decides about the rest.

    What two columns determine together is looked for at the glance alone, by values that are frequent there.

    Parameters
    ----------
    frame : DataFrame
        The original records.
    specification : Specification
    records : int
        Of the frame.
    """
    pairs = [
        Dependency(name, protected)
        for name in specification.published_as_it_is
        for protected in specification.quasi_identifiers
        if name != specification.region or protected in specification.nominal
    ]
    if not pairs:
        return []
    names = list(dict.fromkeys([pair.column for pair in pairs] + [pair.determines for pair in pairs]))
    place = {name: f"h{position}" for position, name in enumerate(names)}
    coded = frame.select([f.xxhash64(*content_of([name])).alias(place[name]) for name in names])
    few = records <= GLANCE
    glance = (coded if few else coded.where(_drawn(frame.columns, records))).toArrow().to_pandas()
    codes = {name: pd.factorize(glance[place[name]])[0].astype(np.int64) for name in names}
    glances = {pair: _guessing(codes[pair.column], codes[pair.determines]) for pair in pairs}
    found, whole = [], _Whole(coded, records)
    for pair, guessing in glances.items():
        if not few:
            given, protected = place[pair.column], place[pair.determines]
            if guessing.refutes() or not whole.repeats(given):
                continue
            guessing = whole.guessing(given, protected)
        named, region = pair.determines in specification.nominal, pair.column == specification.region
        if (named and guessing.always) or (not region and guessing.nearly):
            found.append(pair)
    return [*found, *_together(codes, glances, found)]


def _together(
    codes: dict[str, np.ndarray], glances: dict[Dependency, _Guessing], found: list[Dependency]
) -> Iterator[Dependency]:
    """What two columns determine, neither of which does alone: one of them guesses well."""
    for name in dict.fromkeys(pair.determines for pair in glances):
        alone = {
            pair.column: guessing.right
            for pair, guessing in glances.items()
            if pair.determines == name and pair not in found and guessing.often_enough
        }
        ranked = sorted(alone, key=lambda each: -alone[each])
        for place, one in enumerate(ranked[:TRIED_TOGETHER]):
            for other in ranked[place + 1 :]:
                both = pd.factorize(codes[one] * (codes[other].max(initial=0) + 1) + codes[other])[0]
                if _guessing(both, codes[name]).nearly:
                    yield Dependency(one, name, other)


def _drawn(names: list[str], records: int) -> Column:
    """About `GLANCE` of so many records, drawn by a hash of their contents: the same for any partitioning."""
    drawn = f.pmod(f.xxhash64(f.lit("glance"), *content_of(names)), f.lit(_PLACES))
    return drawn < math.ceil(_PLACES * GLANCE / records)


def _guessing(given: np.ndarray, protected: np.ndarray) -> _Guessing:
    """Of records whose values are numbered from 0."""
    width = int(protected.max(initial=0)) + 1
    place, cells = pd.factorize(given * width + protected)
    records, of = np.bincount(place), cells // width
    total, most = np.zeros((2, int(given.max(initial=0)) + 1), dtype=np.int64)
    np.add.at(total, of, records)
    np.maximum.at(most, of, records)
    repeated, often, wrong = total > 1, total >= OFTEN, total - most
    return _Guessing(
        len(given),
        int(np.bincount(protected).max(initial=0)),
        int(total[repeated].sum()),
        int(wrong[repeated].sum()),
        int(total[often].sum()),
        int(wrong[often].sum()),
    )


class _Whole:
    """Counts over all records of a larger file, each made once."""

    def __init__(self, coded: DataFrame, records: int) -> None:
        self._coded, self._records = coded, records
        self._repeats: dict[str, bool] = {}
        self._commonest: dict[str, int] = {}

    def repeats(self, given: str) -> bool:
        """Whether enough records have a value that occurs again for the column to determine anything."""
        if given not in self._repeats:
            sizes = self._coded.groupBy(column(given)).agg(f.count(f.lit(1)).alias("n"))
            row = sizes.where("n > 1").agg(f.sum("n")).first()
            assert row is not None
            self._repeats[given] = (row[0] or 0) >= REPEATED_SHARE * self._records
        return self._repeats[given]

    def guessing(self, given: str, protected: str) -> _Guessing:
        """How well a variable is guessed by a column."""
        cells = self._coded.groupBy(column(given), column(protected)).agg(f.count(f.lit(1)).alias("n"))
        total, wrong = f.col("n"), f.col("n") - f.col("most")
        row = (
            cells.groupBy(column(given))
            .agg(f.sum("n").alias("n"), f.max("n").alias("most"))
            .agg(
                f.sum(f.when(total > 1, total).otherwise(0)),
                f.sum(f.when(total > 1, wrong).otherwise(0)),
                f.sum(f.when(total >= OFTEN, total).otherwise(0)),
                f.sum(f.when(total >= OFTEN, wrong).otherwise(0)),
            )
            .first()
        )
        assert row is not None
        return _Guessing(self._records, self._most(protected), *row)

    def _most(self, protected: str) -> int:
        """Records that have the commonest value of a variable."""
        if protected not in self._commonest:
            row = self._coded.groupBy(column(protected)).count().agg(f.max("count")).first()
            assert row is not None
            self._commonest[protected] = row[0]
        return self._commonest[protected]
