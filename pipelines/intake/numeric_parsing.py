"""Which variables hold magnitudes, whether or not the specification says so, and their values as numbers."""

from __future__ import annotations

from collections.abc import Sequence

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.intake.typed import number_in_text
from microguard.schemas.specification.model import Specification
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: Stands for a text that is no number.
NOT_A_NUMBER = float("inf")
_TIMES = (t.DateType, t.TimestampType, t.TimestampNTZType)


def numeric_columns(
    frame: DataFrame, names: Sequence[str], specification: Specification
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
    """
    numbers, texts = _numbers(frame, names, specification), _texts(frame, names, specification)
    if texts:
        read = [f.max(text).alias(str(i)) for i, text in enumerate(texts.values())]
        row = frame.agg(*read).first()
        assert row is not None
        numbers |= {name: text for i, (name, text) in enumerate(texts.items()) if row[str(i)] != NOT_A_NUMBER}
    return {name: numbers[name] for name in names if name in numbers}


def readable_numbers(
    frame: DataFrame, names: Sequence[str], specification: Specification
) -> dict[str, Column]:
    """Variables that hold magnitudes, whatever is said of them, dates or times among them, or texts.

    As `numeric_columns` but for kinds, which bind no reader, and for texts that are no number, which are
    `NOT_A_NUMBER`: whoever has some of the records tells, without another pass over all of them.
    """
    of = {name: frame.schema[name].dataType for name in names}
    numbers = {
        name: _finite(column(name).cast("double"))
        for name, kind in of.items()
        if isinstance(kind, t.NumericType)
    }
    texts = {name: _text(name, specification) for name, kind in of.items() if isinstance(kind, t.StringType)}
    times = {
        name: column(name).cast("timestamp").cast("double")
        for name, kind in of.items()
        if isinstance(kind, _TIMES)
    }
    return numbers | texts | times


def digits_as_numbers(frame: DataFrame, names: Sequence[str]) -> dict[str, tuple[Column, Column]]:
    """What the digits of a text tell that is no number: a date, an amount with its currency, a file number.

    Of each text, or bytes that are one, all digits as one number, and their runs from the last to the first:
    "17.05.1980" is 17051980 and 19800517. NULL where there is none.
    """
    found = {}
    for name in names:
        if isinstance(frame.schema[name].dataType, t.StringType | t.BinaryType):
            runs = f.regexp_extract_all(column(name).cast("string"), f.lit("[0-9]+"), f.lit(0))
            padded = f.transform(
                runs, lambda run: f.when(f.length(run) < 2, f.lpad(run, 2, "0")).otherwise(run)
            )
            both = f.array_join(padded, ""), f.array_join(f.reverse(padded), "")
            first, last = (_finite(each.try_cast(t.DoubleType())) for each in both)
            found[name] = first, last
    return found


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
            texts[name] = _text(name, specification)
    return texts


def _text(name: str, specification: Specification) -> Column:
    number = _finite(number_in_text(column(name), specification))
    return f.when(column(name).isNotNull(), f.coalesce(number, f.lit(NOT_A_NUMBER)))


def _finite(number: Column) -> Column:
    return f.when(f.abs(number) < float("inf"), number)  # NaN is larger than any number
