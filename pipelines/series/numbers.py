"""Numbers of units that are published again: those of before, unless their whole class has new ones.

A correction gives a unit a second record, in a class of units that were together before. Where it changed
one variable and left others as they were, a mean of these is a second mean of the same values: by other
weights it is a second equation of the same unknowns (as many nights as a class has units, and all are known),
and where one of them changed it is that one's change. So a variable has a new number where every unit of the
class has a value in it that none of its published records had, and is published as before where not.
"""

from __future__ import annotations

from collections.abc import Sequence

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.row_hash import content_of
from microguard.pipelines.intake.unit_key import UNIT
from microguard.pipelines.series.settings import ORIGIN, VERSION
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

#: In the plan of a generation: whether its births hold the original values of their numbers, as hashes.
VALUES = "values"
_VALUE, _SEEN, _UNKNOWN, _BEFORE = "__value_of", "__seen", "__unknown", "__before"


def value(position: int) -> str:
    """Column with a hash of the original value of a numeric variable, by its place among them."""
    return f"{_VALUE}{position}"


def is_value(name: str) -> bool:
    """Whether a column holds such hashes."""
    return name.startswith(_VALUE)


def original_values(numeric: Sequence[str]) -> list[Column]:
    """Of records before protection: the hashes of their numeric variables, a column each."""
    return [f.xxhash64(*content_of([name])).alias(value(i)) for i, name in enumerate(numeric)]


def with_numbers_of_before(
    protected: DataFrame, births: DataFrame, numeric: Sequence[str], keys: Sequence[str]
) -> DataFrame:
    """Protected records of which those published before have new numbers only where all of their class do.

    Parameters
    ----------
    protected : DataFrame
        `UNIT`, `VERSION`, `ORIGIN`, `original_values` and the published columns.
    births : DataFrame
        The same of all nights before, as they were published; without hashes where software did not keep
        them, whose values may be any.
    numeric : sequence of str
    keys : sequence of str
        Region and protected variables: what makes records one class.
    """
    again = protected.where(f.col(ORIGIN) != 0).select(UNIT)
    hashes = [value(i) for i in range(len(numeric))]
    before = (
        births.join(again, on=UNIT, how="left_semi")
        .groupBy(UNIT)
        .agg(
            *[f.collect_set(name).alias(f"{_SEEN}{i}") for i, name in enumerate(hashes)],
            *[f.count_if(f.col(name).isNull()).alias(f"{_UNKNOWN}{i}") for i, name in enumerate(hashes)],
            *[_latest(name).alias(f"{_BEFORE}{i}") for i, name in enumerate(numeric)],
        )
    )
    together = Window.partitionBy(ORIGIN, *[column(name) for name in keys])
    numbers = {
        name: f.when(f.min(_new(i)).over(together) | column(name).isNull(), column(name)).otherwise(
            f.col(f"{_BEFORE}{i}")
        )
        for i, name in enumerate(numeric)
    }
    columns = [numbers.get(name, column(name)).alias(name) for name in protected.columns]
    return protected.join(before, on=UNIT, how="left").select(*columns)


def _latest(name: str) -> Column:
    """The number that was published last; a missing one is none."""
    return f.max_by(column(name), f.when(column(name).isNotNull(), f.col(VERSION)))


def _new(position: int) -> Column:
    """Whether no record published of the unit had its value; true of units that never were."""
    seen, unknown = f.col(f"{_SEEN}{position}"), f.col(f"{_UNKNOWN}{position}")
    return f.coalesce((unknown == 0) & ~f.array_contains(seen, f.col(value(position))), f.lit(True))
