"""Which variables hold magnitudes, whether or not the specification says so, and their values as numbers."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from pipelines.engine.column_names import column
from pipelines.intake.typed import number_in_text
from schemas.specification.model import Specification

_TIMES = (t.DateType, t.TimestampType, t.TimestampNTZType)


def magnitudes(
    frame: DataFrame, names: Sequence[str], specification: Specification, *, times: bool = False
) -> dict[str, Column]:
    """Variables that hold magnitudes, as double columns: NULL where there is no finite number.

    A variable whose kind is not given holds magnitudes where its type is a number, or where each of its
    texts reads as one, as in a CSV. Kind "nominal" says that they are codes.

    Parameters
    ----------
    frame : DataFrame
    names : sequence of str
        Columns of the frame.
    specification : Specification
    times : bool
        Whether dates and times count as magnitudes.
    """
    texts, numbers = {}, {}
    for name in names:
        kind, type_ = specification.variables[name].kind, frame.schema[name].dataType
        if kind not in (None, "numeric"):
            continue
        if isinstance(type_, t.NumericType):
            numbers[name] = column(name).cast("double")
        elif isinstance(type_, t.StringType):
            texts[name] = number_in_text(column(name), specification)
        elif times and isinstance(type_, _TIMES):
            numbers[name] = column(name).cast("timestamp").cast("double")
    if texts:
        read = [
            f.bool_and(number.isNotNull() | column(name).isNull()).alias(str(i))
            for i, (name, number) in enumerate(texts.items())
        ]
        row = frame.agg(*read).first()
        assert row is not None
        numbers |= {name: number for i, (name, number) in enumerate(texts.items()) if row[str(i)]}
    return {name: _finite(numbers[name]) for name in names if name in numbers}


def _finite(number: Column) -> Column:
    return f.when(f.abs(number) < float("inf"), number)  # NaN is larger than any number
