"""Choose the number of decimals of a table without `table.decimals`: that of the data.

With more digits than the data has, every cell that kept its value ends in zeros and the moved ones do not:
the last digits then tell which cells were moved. So whole-number data is published in whole numbers. Data
with more digits than `LARGEST_DEFAULT` is rounded to these, record by record, like all cells.
"""

from __future__ import annotations

from functools import reduce
from operator import mul

from microguard.pipelines.engine.column_names import column
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import DEFAULT_DECIMALS as LARGEST_DEFAULT
from microguard.schemas.specification.table import Table
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f


def with_digits_of_data(frame: DataFrame, specification: Specification) -> Specification:
    """Return the specification with `table.decimals` set to the digits that the values need.

    It is returned as it is where it names the digits, where counts have none, and where the values need
    `LARGEST_DEFAULT`: the release then has the id that it had when these were the default for all data.

    Parameters
    ----------
    frame : DataFrame
        Records or cells that are kept.
    specification : Specification
    """
    table = specification.table
    assert table is not None
    if table.decimals is not None or table.counts:
        return specification
    needed = digits_of_data(frame, specification, table)
    if needed == LARGEST_DEFAULT:
        return specification
    return specification.model_copy(update={"table": table.model_copy(update={"decimals": needed})})


def digits_of_data(frame: DataFrame, specification: Specification, table: Table) -> int:
    """Return the fewest digits after the point that represent the contribution of each record exactly.

    Contributions count with their weight and without it: the rules look at them without. Both are taken at
    `LARGEST_DEFAULT` digits, as records are rounded to these before they are added, so that what a
    floating-point product leaves behind them is no digit.
    """
    value = f.lit(1.0) if table.value is None else column(table.value).cast("double")
    parts = [column(name).cast("double") for columns in table.parts.values() for name in columns]
    amounts = [value, *parts]
    if table.weighted:
        weight = column(specification.weight or "").cast("double")
        amounts += [reduce(mul, (amount, weight)) for amount in amounts]
    row = frame.agg(f.max(f.greatest(f.lit(0), *map(_digits, amounts)))).first()
    return LARGEST_DEFAULT if row is None or row[0] is None else int(row[0])


def _digits(amount: Column) -> Column:
    """Return the digits of one amount; the most if it is missing or too large for its last digit."""
    exact = f.bround(amount, LARGEST_DEFAULT)
    fewest = f.lit(LARGEST_DEFAULT)
    for digits in reversed(range(LARGEST_DEFAULT)):
        fewest = f.when(f.bround(exact, digits) == exact, digits).otherwise(fewest)
    return f.when(amount.isNull() | f.isnan(amount), LARGEST_DEFAULT).otherwise(fewest)
