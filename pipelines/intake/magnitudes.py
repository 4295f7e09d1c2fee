"""Which variables hold magnitudes, whether or not the specification says so, and their values as numbers."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from pipelines.engine.column_names import column
from pipelines.intake.typed import number_in_text
from schemas.specification.model import Specification

#: Stands for a text that is no number.
UNREAD = float("inf")
_TIMES = (t.DateType, t.TimestampType, t.TimestampNTZType)


def magnitudes(frame: DataFrame, names: Sequence[str], specification: Specification) -> dict[str, Column]:
    """Variables that hold magnitudes, as double columns: NULL where there is no finite number.

    A variable whose kind is not given holds magnitudes where its type is a number, or where each of its
    texts reads as one, as in a CSV. Kind "nominal" says that they are codes.

    Parameters
    ----------
    frame : DataFrame
    names : sequence of str
        Columns of the frame.
    specification : Specification
    """
    numbers, texts = _numbers(frame, names, specification), _texts(frame, names, specification)
    if texts:
        read = [f.max(text).alias(str(i)) for i, text in enumerate(texts.values())]
        row = frame.agg(*read).first()
        assert row is not None
        numbers |= {name: text for i, (name, text) in enumerate(texts.items()) if row[str(i)] != UNREAD}
    return {name: numbers[name] for name in names if name in numbers}


def sizes(frame: DataFrame, names: Sequence[str], specification: Specification) -> dict[str, Column]:
    """Variables that hold magnitudes, dates or times among them, or texts of which any may be none.

    As `magnitudes` but for texts that are no number, which are `UNREAD`: whoever has some of the records
    tells, without another pass over all of them.
    """
    times = {
        name: column(name).cast("timestamp").cast("double")
        for name in names
        if specification.variables[name].kind is None and isinstance(frame.schema[name].dataType, _TIMES)
    }
    return _numbers(frame, names, specification) | _texts(frame, names, specification) | times


def _numbers(frame: DataFrame, names: Sequence[str], specification: Specification) -> dict[str, Column]:
    return {
        name: _finite(column(name).cast("double"))
        for name in names
        if specification.variables[name].kind in (None, "numeric")
        and isinstance(frame.schema[name].dataType, t.NumericType)
    }


def _texts(frame: DataFrame, names: Sequence[str], specification: Specification) -> dict[str, Column]:
    texts = {}
    for name in names:
        given = specification.variables[name].kind in (None, "numeric")
        if given and isinstance(frame.schema[name].dataType, t.StringType):
            number = _finite(number_in_text(column(name), specification))
            texts[name] = f.when(column(name).isNotNull(), f.coalesce(number, f.lit(UNREAD)))
    return texts


def _finite(number: Column) -> Column:
    return f.when(f.abs(number) < float("inf"), number)  # NaN is larger than any number
