"""Unmodified columns that determine a protected variable, for example activity A88, which determines A21."""

from __future__ import annotations

from microguard.pipelines.measures.attribute_disclosure.arithmetic import computed
from microguard.pipelines.measures.attribute_disclosure.compared_columns import compared_columns
from microguard.pipelines.measures.attribute_disclosure.conditional_mode import (
    Dependency,
    dependencies_among,
)
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.unmodified_columns import modified_variables, unmodified_columns
from pyspark.sql import DataFrame


def dependencies(frame: DataFrame, specification: Specification, records: int) -> list[Dependency]:
    """Find the dependencies among all pairs: a sample refutes most, the whole file decides the remaining
    ones.

    Parameters
    ----------
    frame : DataFrame
        The original records.
    specification : Specification
    records : int
        Number of records of the frame.
    """
    modified = modified_variables(specification)
    pairs = [
        Dependency(name, protected)
        for name in unmodified_columns(specification)
        for protected in modified
        if name != specification.region or protected in specification.nominal
    ]
    if not pairs:
        return []
    names = list(dict.fromkeys([pair.column for pair in pairs] + [pair.determines for pair in pairs]))
    as_they_are = [name for name in unmodified_columns(specification) if name in names]
    nominal, region = specification.nominal, specification.region
    single = {name: [name] for name in names}
    seen = compared_columns(frame, single, as_they_are, nominal, specification, records)
    found = dependencies_among(pairs, seen.codes, nominal, region, seen.whole)
    protected = {
        name: seen.numbers[name]
        for name in specification.numeric
        if name in seen.numbers and name in modified
    }
    categories = {name: seen.codes[name] for name in nominal if name in modified}
    among = {name: seen.codes[name] for name in as_they_are}
    for reading in (seen.numbers, *seen.of_digits):
        amounts = {
            name: number
            for name, number in reading.items()
            if name in among
            and name != region
            and (reading is seen.numbers or name not in seen.whole_numbers)
        }
        found += computed(amounts, protected, categories, found, among)
    return found
