"""The input of a table: the same file, with the columns of `[table]` assigned to the roles that reading and
counting use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from microguard.schemas.errors import SpecificationError
from microguard.schemas.method_registry import method_row
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.sections import Blocking, Method, Variable
from microguard.schemas.specification.table import Table


def table_of(specification: Specification) -> Table:
    """Return the section `[table]`.

    Raises
    ------
    SpecificationError
        If the specification has no section `[table]`.
    """
    if specification.table is None:
        raise SpecificationError(
            "The specification has no section [table]: microguard adjust protects a table. Name its "
            "dimensions in table.tables, or call microguard protect to protect the records."
        )
    return specification.table


def require_table(specification: Specification) -> None:
    """Refuse keys for records that a table would ignore.

    Raises
    ------
    SpecificationError
    """
    table = table_of(specification)
    if specification.publish.series != "single":
        raise SpecificationError(
            f"[publish] series: found {specification.publish.series!r}, expected 'single': microguard "
            "adjust publishes each table separately, under its own name and path. Write a specification of "
            "the table without the key."
        )
    household = specification.household
    counts_households = specification.method.unit == "household" and table.source == "microdata"
    if counts_households and table.holding != household:
        raise SpecificationError(
            "[method] unit: found 'household', expected 'record': a table counts units, of which one "
            f"household may have several. With table.holding = {household!r} each household is one "
            "contributor, if the table is of amounts, or its cells are suppressed. Otherwise write a "
            "specification of the table without the key."
        )


def require_records(specification: Specification) -> None:
    """Refuse a specification without records to protect.

    Raises
    ------
    SpecificationError
    """
    if not specification.quasi_identifiers:
        raise SpecificationError(
            "The specification has no variable of role quasi_identifier: there is nothing to protect in the "
            "records. Declare one in [variables], or call microguard adjust to protect the table of [table]."
        )


def as_input(specification: Specification) -> Specification:
    """Return the specification as the reader of a table needs it.

    Dimensions become nominal and values numeric quasi-identifiers. Missing or unreadable entries are
    therefore rejected, or (codes only) treated as a category, as `[missing]` states. Units are read without a
    check for repetitions, because one unit may have several records here. Rows of a finished table are cells,
    not units, and there may be fewer than k of them. The reader omits all other columns.
    """
    table = table_of(specification)
    variables, whose = {}, (table.holding, table.request, table.waiver)
    swapping, method = _swapping(specification)
    for name, variable in specification.variables.items():
        if name in swapping:
            variables[name] = variable
        elif name in table.columns or name == table.status:
            category = {"role": "quasi_identifier", "kind": "nominal", "top_code": None, "bottom_code": None}
            variables[name] = variable.model_copy(update={**category, "round_to": None})
        elif name in table.numbers:  # totals are computed from the file, not from the published records
            variables[name] = Variable(role="quasi_identifier", kind="numeric", missing=variable.missing)
        elif (variable.role == "unit" or name in whose) and table.source == "microdata":
            variables[name] = Variable(role="other", kind="nominal")
        elif variable.role == "weight" and table.weighted:
            variables[name] = variable
        else:
            variables[name] = Variable(role="identifier")
    changes = {
        "variables": variables,
        "groups": (),
        "blocking": Blocking(),
        "population": None,
        "method": method,
        "missing": specification.missing.model_copy(update={"numeric": "reject"}),
    }
    if table.source == "cells":
        changes["release"] = specification.release.model_copy(update={"k": 1})
    return specification.model_copy(update=changes)


def _swapping(specification: Specification) -> tuple[Collection[str], Method]:
    """Return the columns that the record method reads before the table is counted, and the section of this
    method.
    """
    method, row = specification.method, method_row("records", specification.method.name)
    given = method.method_parameters(row)
    if not table_of(specification).swapped or given is None:
        return (), method
    named = given.for_tables(specification.declared)
    further = {key: value for key, value in vars(named).items() if value != getattr(given, key)}
    read = {*_texts(tuple(vars(named).values())), *specification.with_role("household", "risk")}
    return read, method.model_copy(update={"parameters": {**method.parameters, **further}})


def _texts(values: tuple[object, ...]) -> Iterator[str]:
    """Yield the texts in nested tuples."""
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple):
            yield from _texts(value)
