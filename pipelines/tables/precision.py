"""Default number of decimals of a table without `table.decimals`: that of the data.

If a table had more digits than the data, unchanged cells would end in zeros and changed cells would not: the
last digits would disclose which cells were changed. Integer data is therefore published as integers. Data
with more than `LARGEST_DEFAULT` digits is rounded to this number of digits, first each record, then each
cell.
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
    """Return the specification with `table.decimals` set to the number of decimals that the values need.

    The specification is returned unchanged if it sets the digits, if the table has counts, or if the values
    need `LARGEST_DEFAULT` digits. In the last case the release keeps the id of earlier versions, which used
    this number for all data.

    Parameters
    ----------
    frame : DataFrame
        Records or cells that were not rejected.
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
    """Return the smallest number of decimals that represents the contribution of each record exactly.

    Contributions are considered with and without their weight, because the rules use them without. Both are
    first rounded to `LARGEST_DEFAULT` digits, as records are before they are added: the error of a
    floating-point product then adds no digits.
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
    """Return the number of decimals of one amount; `LARGEST_DEFAULT` if it is missing or too large to be
    exact.
    """
    exact = f.bround(amount, LARGEST_DEFAULT)
    fewest = f.lit(LARGEST_DEFAULT)
    for digits in reversed(range(LARGEST_DEFAULT)):
        fewest = f.when(f.bround(exact, digits) == exact, digits).otherwise(fewest)
    return f.when(amount.isNull() | f.isnan(amount), LARGEST_DEFAULT).otherwise(fewest)
