"""Numeric values of corrected units: a variable keeps its published value unless it changed, or its whole
class did.

A correction gives a unit a second record. Its class has units that were in one class before. If the
correction changes one variable only, the class mean of another variable is a second mean of the same values.
With other weights, this is a second equation in the same unknowns: as many updates as the class has units
determine all values. If one unit's value changed, the difference of the means discloses that change. A
variable therefore gets a new published value only if every unit of the class has a value that none of its
published records had.
"""

from __future__ import annotations

from collections.abc import Sequence

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.row_hash import content_of
from microguard.pipelines.intake.unit_key import UNIT
from microguard.pipelines.series.settings import ORIGIN, VERSION
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

#: Key in the plan of a generation that states whether its new records have hashes of original numeric values.
VALUES = "values"
_VALUE, _SEEN, _UNKNOWN, _BEFORE = "__value_of", "__seen", "__unknown", "__before"


def value(position: int) -> str:
    """Return the name of the column with the hash of a numeric variable's original value, by the variable's
    position.
    """
    return f"{_VALUE}{position}"


def is_value(name: str) -> bool:
    """Return whether a column contains hashes of original values."""
    return name.startswith(_VALUE)


def original_values(numeric: Sequence[str]) -> list[Column]:
    """Return the hashes of the numeric variables of records before protection, one column for each."""
    return [f.xxhash64(*content_of([name])).alias(value(i)) for i, name in enumerate(numeric)]


def with_earlier_values(
    protected: DataFrame, earlier: DataFrame, numeric: Sequence[str], keys: Sequence[str]
) -> DataFrame:
    """Replace unchanged numeric values of corrected units by the last published ones, unless their whole
    class changed.

    Parameters
    ----------
    protected : DataFrame
        `UNIT`, `VERSION`, `ORIGIN`, `original_values` and the published columns.
    earlier : DataFrame
        The same columns of the records of all earlier updates, as they were published. Hashes are NULL if the
        software version of that update did not store them.
    numeric : sequence of str
    keys : sequence of str
        Region and protected variables: records with equal values of these keys form a class.
    """
    again = protected.where(f.col(ORIGIN) != 0).select(UNIT)
    hashes = [value(i) for i in range(len(numeric))]
    before = (
        earlier.join(again, on=UNIT, how="left_semi")
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
    """Return the last published value that is not missing."""
    return f.max_by(column(name), f.when(column(name).isNotNull(), f.col(VERSION)))


def _new(position: int) -> Column:
    """Return whether no published record of the unit had this value; true if the unit was never published."""
    seen, unknown = f.col(f"{_SEEN}{position}"), f.col(f"{_UNKNOWN}{position}")
    return f.coalesce((unknown == 0) & ~f.array_contains(seen, f.col(value(position))), f.lit(True))
