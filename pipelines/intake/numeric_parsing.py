"""Find the variables whose values are magnitudes, and parse their values as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.intake.typed import number_in_text
from microguard.schemas.specification.model import Specification
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: Value of a text that cannot be parsed as a number.
NOT_A_NUMBER = float("inf")
#: Smallest and largest number of a column; None without a number.
Range = tuple[float | None, float | None]
_TIMES = (t.DateType, t.TimestampType, t.TimestampNTZType)


def numeric_columns(
    frame: DataFrame,
    names: Sequence[str],
    specification: Specification,
    ranges: Mapping[str, Range] | None = None,
) -> dict[str, Column]:
    """Return the variables whose values are magnitudes as double columns; non-finite values become NULL.

    A variable without a kind has magnitudes if its type is numeric, or if each of its texts is a number, as
    in a CSV. Values of a variable of kind "nominal" are codes, even if they are numbers.

    Parameters
    ----------
    frame : DataFrame
    names : sequence of str
        Columns of the frame.
    specification : Specification
    ranges : mapping of variable to its `Range`, optional
        Of the `possible_numbers` of the frame; otherwise a pass over the frame computes them of texts.
    """
    numbers, texts = possible_numbers(frame, names, specification), _texts(frame, names, specification)
    if ranges is None and texts:
        read = [f.max(text).alias(str(i)) for i, text in enumerate(texts.values())]
        row = frame.agg(*read).first()
        assert row is not None
        ranges = {name: (None, row[str(i)]) for i, name in enumerate(texts)}
    no_numbers = {name for name in texts if ranges is not None and ranges[name][1] == NOT_A_NUMBER}
    return {name: number for name, number in numbers.items() if name not in no_numbers}


def possible_numbers(
    frame: DataFrame, names: Sequence[str], specification: Specification
) -> dict[str, Column]:
    """Return the double columns of `numeric_columns`, and those of texts that are not all numbers.

    A text that is not a number becomes `NOT_A_NUMBER`, so the largest value of its column shows whether all
    are numbers.
    """
    numbers = _numbers(frame, names, specification) | _texts(frame, names, specification)
    return {name: numbers[name] for name in names if name in numbers}


def readable_numbers(
    frame: DataFrame, names: Sequence[str], specification: Specification
) -> dict[str, Column]:
    """Return every numeric, text, date and time variable as a double column, whatever its declared kind.

    A reader of published files can do arithmetic with values of any kind, so this ignores kinds, unlike
    `numeric_columns`. Texts that are not numbers become `NOT_A_NUMBER`. A caller that has some of the records
    can therefore decide whether a text variable is numeric without another pass over all records.
    """
    types = {name: frame.schema[name].dataType for name in names}
    numbers = {
        name: _finite(column(name).cast("double"))
        for name, kind in types.items()
        if isinstance(kind, t.NumericType)
    }
    texts = {
        name: _text(name, specification) for name, kind in types.items() if isinstance(kind, t.StringType)
    }
    times = {
        name: column(name).cast("timestamp").cast("double")
        for name, kind in types.items()
        if isinstance(kind, _TIMES)
    }
    return numbers | texts | times


def digits_as_numbers(frame: DataFrame, names: Sequence[str]) -> dict[str, tuple[Column, Column]]:
    """Return the digits in texts such as dates, amounts with a currency or file numbers as two numbers.

    The first number has all digits of the text in order, the second has the runs of digits in reverse order:
    "17.05.1980" becomes 17051980 and 19800517. Both are NULL for a text without digits.
    """
    numbers = {}
    for name in names:
        if isinstance(frame.schema[name].dataType, t.StringType | t.BinaryType):
            runs = f.regexp_extract_all(column(name).cast("string"), f.lit("[0-9]+"), f.lit(0))
            padded = f.transform(
                runs, lambda run: f.when(f.length(run) < 2, f.lpad(run, 2, "0")).otherwise(run)
            )
            both = f.array_join(padded, ""), f.array_join(f.reverse(padded), "")
            first, last = (_finite(each.try_cast(t.DoubleType())) for each in both)
            numbers[name] = first, last
    return numbers


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
        may_be_numeric = specification.variables[name].kind in (None, "numeric")
        if may_be_numeric and isinstance(frame.schema[name].dataType, t.StringType):
            texts[name] = _text(name, specification)
    return texts


def _text(name: str, specification: Specification) -> Column:
    number = _finite(number_in_text(column(name), specification))
    return f.when(column(name).isNotNull(), f.coalesce(number, f.lit(NOT_A_NUMBER)))


def _finite(number: Column) -> Column:
    return f.when(f.abs(number) < float("inf"), number)  # in Spark, NaN is larger than any number
