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
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

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
        If the file of counts is missing, unreadable, lacks a column, or has a line without a count.
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
        value = column(name).try_cast(frame.schema[name].dataType)
        # a value that the type of the records cannot represent matches no record, so its line is dropped
        fits = fits & (value.isNotNull() | column(name).isNull())
        key.append(value.alias(name))
    return counts.where(fits).groupBy(*key).agg(f.sum(number).alias(HOLDERS))


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
