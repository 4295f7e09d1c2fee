"""Population counts of key combinations, read from the file that the specification names.

The counts are read and recoded like the input, so that both have the same values. Counts of combinations that
recoding merges are summed.
"""

from __future__ import annotations

from microguard.pipelines.engine.column_names import column
from microguard.pipelines.intake.read import read
from microguard.pipelines.intake.typed import UNREADABLE
from microguard.schemas.errors import InputRejected, SpecificationError
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.sections import Variable
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: Column with the number of units of a combination in the population.
HOLDERS = "__holders"


def population(frame: DataFrame, specification: Specification) -> DataFrame | None:
    """Return the key combinations (`Specification.population_key`) of the population with their number of
    units, `HOLDERS`.

    Parameters
    ----------
    frame : DataFrame
        The records; the values of the population are cast to their types.

    Raises
    ------
    InputRejected
        If the file of counts is missing, unreadable, lacks a column, has a line without a count, or has a
        column whose type has no value in common with that of the records.
    """
    source = specification.population
    if source is None:
        return None
    try:
        counts = read(frame.sparkSession, _as_input(specification)).frame
    except (InputRejected, SpecificationError) as error:
        raise type(error)(
            f"[population] is read with its own keys in place of those of [input]: {error}"
        ) from None
    number = column(source.count).cast("double")
    counted = f.coalesce(number >= 0, f.lit(False)) & ~f.isnan(number) & (number != float("inf"))
    faulty = counts.where(~counted).count()
    if faulty:
        raise InputRejected(
            f"[population] {source.path!r}: found {faulty} line(s) without a count, expected a finite "
            f"number of at least 0 in the column {source.count}. Correct these lines, or set "
            "population.count to the column with the counts."
        )
    key, fits = [], f.col(UNREADABLE) == 0
    for name in specification.population_key:
        value, same = _in_type_of_records(counts, name, frame.schema[name].dataType)
        # a value that the type of the records cannot represent matches no record, so its line is dropped
        fits = fits & (same | column(name).isNull())
        key.append(value.alias(name))
    return counts.where(fits).groupBy(*key).agg(f.sum(number).alias(HOLDERS))


def _in_type_of_records(counts: DataFrame, name: str, kind: t.DataType) -> tuple[Column, Column]:
    """Return a value of the population in the type of the records, and whether it is the same value there.

    A cast may change a value: 1.6 becomes 1, the code 2 becomes true, a time becomes its day. Persons counted
    under a value that no record has would then hide those who are rare under the value that some have.

    Raises
    ------
    InputRejected
        If the types have no value in common, such as dates and numbers.
    """
    given, written = column(name), counts.schema[name].dataType
    value = given.try_cast(kind)
    try:
        counts.select(value).schema  # noqa: B018, the analysis of Spark refuses the cast here
    except AnalysisException:
        raise InputRejected(
            f"[population] {name}: expected values of type {kind.simpleString()} like those of the records, "
            f"found {written.simpleString()}. Write the counts by the same values as the records"
            + (", and times in microseconds." if isinstance(written, t.LongType) else ".")
        ) from None
    if isinstance(written, t.FloatType | t.DoubleType) and isinstance(kind, t.IntegralType | t.DecimalType):
        return value, f.coalesce(
            (value.try_cast(written) == given) & _distinct(given, written, kind), f.lit(False)
        )
    if isinstance(kind, t.FloatType):  # another number with the same nearest float is the same number
        return value, value.isNotNull()
    if isinstance(written, t.StringType) and isinstance(kind, t.NumericType | t.DateType):
        # texts may write the same number or day differently ("01", "2000-1-1")
        wide = t.DoubleType() if isinstance(kind, t.NumericType) else t.TimestampType()
        return value, f.coalesce(value.try_cast(wide) == given.try_cast(wide), f.lit(False))
    if isinstance(written, t.StringType):
        return value, value.isNotNull()
    return value, f.coalesce(value.try_cast(written) == given, f.lit(False))


def _distinct(given: Column, written: t.DataType, kind: t.DataType) -> Column:
    """Return whether no other number of the records' type has the same nearest float (or double).

    Beyond 2^24 (2^53) several whole numbers have one, and decimals of more than 6 (15) digits do.
    """
    single, scale = isinstance(written, t.FloatType), kind.scale if isinstance(kind, t.DecimalType) else 0
    whole, digits = (2**24, 6) if single else (2**53, 15)
    return f.abs(given) < f.lit(float(10 ** (digits - scale) if scale else whole))


def _as_input(specification: Specification) -> Specification:
    """Return a specification whose input is the file of counts, and whose variables are its key and its
    count.
    """
    population = specification.population
    assert population is not None
    source = specification.input.model_copy(
        update={
            "path": population.path,
            "format": population.format,
            "delimiter": population.delimiter,
            "encoding": population.encoding,
            "columns": (),
            "metadata": None,
            "expectations": None,
            "unmentioned": "drop",
        }
    )
    variables = {name: specification.variables[name] for name in specification.population_key}
    variables[population.count] = Variable(role="other", kind="numeric")
    return specification.model_copy(update={"input": source, "variables": variables, "population": None})
