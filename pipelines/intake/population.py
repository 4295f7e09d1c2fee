"""How many the population has of each combination, where an office gives counts of it.

The counts are read and recoded as the input is, so that both have the same values; what is recoded to one
combination is added up.
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

#: How many the population has of the combination in a line.
HOLDERS = "__holders"


def population(frame: DataFrame, specification: Specification) -> DataFrame | None:
    """The combinations of the population by `Specification.population_key`, and `HOLDERS` of each.

    Parameters
    ----------
    frame : DataFrame
        The records: values of the population get the types of theirs.

    Raises
    ------
    InputRejected
        Where the counts are absent, unreadable, lack a column, or have a line without a count.
    """
    given = specification.population
    if given is None:
        return None
    try:
        counts = read(frame.sparkSession, _as_input(specification)).frame
    except (InputRejected, SpecificationError) as error:
        raise type(error)(
            f"[population] is read with its own keys in place of those of [input]: {error}"
        ) from None
    number = column(given.count).cast("double")
    counted = f.coalesce(number >= 0, f.lit(False)) & ~f.isnan(number) & (number != float("inf"))
    faulty = counts.where(~counted).count()
    if faulty:
        raise InputRejected(
            f"[population] {given.path!r} has {faulty} line(s) without a count: {given.count} needs a number "
            "of at least 0 in each."
        )
    key, fits = [], f.col(UNREADABLE) == 0
    for name in specification.population_key:
        value = column(name).try_cast(frame.schema[name].dataType)
        fits = fits & (
            value.isNotNull() | column(name).isNull()
        )  # a value no record can have is none of theirs
        key.append(value.alias(name))
    return counts.where(fits).groupBy(*key).agg(f.sum(number).alias(HOLDERS))


def _as_input(specification: Specification) -> Specification:
    """The counts as an input of their own, of the key and the number alone."""
    given = specification.population
    assert given is not None
    source = specification.input.model_copy(
        update={
            "path": given.path,
            "format": given.format,
            "delimiter": given.delimiter,
            "encoding": given.encoding,
            "columns": (),
            "metadata": None,
            "expectations": None,
            "unmentioned": "drop",
        }
    )
    variables = {name: specification.variables[name] for name in specification.population_key}
    variables[given.count] = Variable(role="other", kind="numeric")
    return specification.model_copy(update={"input": source, "variables": variables, "population": None})
