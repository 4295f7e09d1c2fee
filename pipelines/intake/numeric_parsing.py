"""Variables whose values are magnitudes, and parsing of their values as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.intake.typed import number_in_text
from microguard.schemas.specification.model import Specification
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: Result for a text that cannot be parsed as a number.
NOT_A_NUMBER = float("inf")
#: Pattern of text that consists only of digits and of the signs used in numbers, dates and times.
_IN_DIGITS = r"^[-+]?[0-9][0-9 .,:/'T+-]*Z?$"
_TIMES = (t.DateType, t.TimestampType, t.TimestampNTZType)
_COUNTS = ("values", "numbers", "in_digits")


@dataclass(frozen=True)
class Range:
    """Counts of numbers, dates and times among the values of a column, and their range.

    Attributes
    ----------
    smallest, largest : float or None
        Smallest and largest number of the column; None without a number.
    values, numbers, in_digits : int
        Values that are not missing; those that are finite numbers; and those that are numbers, dates, times
        or texts of digits.
    """

    smallest: float | None
    largest: float | None
    values: int
    numbers: int
    in_digits: int

    @property
    def mostly_numbers(self) -> bool:
        """Return whether most values are numbers; a few marks such as "NA" do not make the column
        categorical.
        """
        return 2 * self.numbers > self.values

    @property
    def mostly_in_digits(self) -> bool:
        """Return whether most values are numbers, dates or times, which hardly ever are equal for two
        persons.
        """
        return 2 * self.in_digits > self.values


def range_columns(
    frame: DataFrame, names: Sequence[str], specification: Specification
) -> dict[str, tuple[Column, str]]:
    """Return columns and their aggregates ("min", "max", "sum"), from which `ranges_in` computes the
    ranges.
    """
    numbers = possible_numbers(frame, names, specification)
    columns: dict[str, tuple[Column, str]] = {}
    for i, name in enumerate(_ranged(frame, names, specification)):
        value, kind = column(name), frame.schema[name].dataType
        number = _finite(numbers[name]) if name in numbers else f.lit(None).cast("double")
        digits = value.isNotNull()
        if isinstance(kind, t.StringType):
            digits = number.isNotNull() | value.rlike(_IN_DIGITS)
        columns |= {f"__smallest{i}": (number, "min"), f"__largest{i}": (number, "max")}
        counted = (value.isNotNull(), number.isNotNull(), digits)
        for what, test in zip(_COUNTS, counted, strict=True):
            columns[f"__{what}{i}"] = (f.coalesce(test, f.lit(False)).cast("bigint"), "sum")
    return columns


def ranges_in(
    parts: Mapping[str, Sequence[float | None]],
    frame: DataFrame,
    names: Sequence[str],
    specification: Specification,
) -> dict[str, Range]:
    """Combine the aggregates of `range_columns` over all parts of the records into ranges.

    Variables that cannot be numbers are left out.

    Parameters
    ----------
    parts : mapping of column to its values
    """
    ranges = {}
    for i, name in enumerate(_ranged(frame, names, specification)):
        found = {
            what: [each for each in parts[f"__{what}{i}"] if each is not None]
            for what in ("smallest", "largest", *_COUNTS)
        }
        smallest, largest = min(found["smallest"], default=None), max(found["largest"], default=None)
        ranges[name] = Range(smallest, largest, *(int(sum(found[what])) for what in _COUNTS))
    return ranges


def ranges_of(frame: DataFrame, names: Sequence[str], specification: Specification) -> dict[str, Range]:
    """Compute in one pass the ranges of those variables of a frame that may be numbers."""
    columns = range_columns(frame, names, specification)
    sums = [getattr(f, aggregate)(values).alias(key) for key, (values, aggregate) in columns.items()]
    row = frame.agg(*sums).first() if sums else None
    parts = {} if row is None else {name: [value] for name, value in row.asDict().items()}
    return ranges_in(parts, frame, names, specification)


def numeric_columns(
    frame: DataFrame,
    names: Sequence[str],
    specification: Specification,
    ranges: Mapping[str, Range] | None = None,
) -> dict[str, Column]:
    """Return the variables whose values are magnitudes as double columns; non-finite values become NULL.

    A variable without a kind has magnitudes if its type is numeric, or if most of its texts are numbers, as
    in a CSV with marks for missing amounts; the other texts are NULL. Values of a variable of kind "nominal"
    are codes, even if they are numbers.

    Parameters
    ----------
    frame : DataFrame
    names : sequence of str
        Columns of the frame.
    specification : Specification
    ranges : mapping of variable to its `Range`, optional
        Of the frame; otherwise a pass over the frame computes them of texts.
    """
    numbers, texts = possible_numbers(frame, names, specification), _texts(frame, names, specification)
    if ranges is None:
        ranges = ranges_of(frame, list(texts), specification)
    return {
        name: _finite(number)
        for name, number in numbers.items()
        if name not in texts or ranges[name].mostly_numbers
    }


def possible_numbers(
    frame: DataFrame, names: Sequence[str], specification: Specification
) -> dict[str, Column]:
    """Return the double columns of `numeric_columns`, and those of texts that are not mostly numbers.

    A text that is not a number becomes `NOT_A_NUMBER`.
    """
    numbers = _numbers(frame, names, specification) | _texts(frame, names, specification)
    return {name: numbers[name] for name in names if name in numbers}


def readable_numbers(
    frame: DataFrame, names: Sequence[str], specification: Specification
) -> dict[str, Column]:
    """Return every numeric, text, date and time variable as a double column, whatever kind it is declared as.

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
        # a cast to a timestamp fails for days of years after 294247
        name: f.unix_date(column(name)).cast("double") * 86_400
        if isinstance(kind, t.DateType)
        else column(name).cast("timestamp").cast("double")
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


def _ranged(frame: DataFrame, names: Sequence[str], specification: Specification) -> list[str]:
    """Return the variables whose values may be numbers, dates or times, by their type and kind."""
    kinds = (t.NumericType, t.StringType, *_TIMES)
    return [
        name
        for name in names
        if specification.variables[name].kind in (None, "numeric")
        and isinstance(frame.schema[name].dataType, kinds)
    ]


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
