"""Checks of derived columns: each must have an expression of other published numeric columns."""

from __future__ import annotations

from collections.abc import Iterator

from microguard.schemas.expressions import FaultyExpression, parse_expression, terms
from microguard.schemas.specification.faults import NOTHING, Fault, fault
from microguard.schemas.specification.model import Specification


def derived_faults(spec: Specification) -> Iterator[Fault]:
    """Return the faults of derived columns without an expression, and of expressions that contain unpublished
    columns.
    """
    for name in spec.with_role("derived"):
        if name not in spec.derived:
            yield fault(("derived", name), NOTHING, 'an expression, because its role is "derived"')
        if spec.variables[name].kind != "numeric":
            allowed = "numeric, because derived columns are computed numbers"
            yield fault(("variables", name, "kind"), spec.variables[name].kind or NOTHING, allowed)
        if spec.variables[name].recodes:
            yield fault(
                ("variables", name),
                ", ".join(spec.variables[name].recodes),
                'no recoding keys with role "derived"',
            )
    choices = tuple(name for name in spec.published if name not in spec.derived)
    for name, text in spec.derived.items():
        if name not in spec.with_role("derived"):
            yield fault(("derived", name), text, 'the name of a variable of role "derived"')
        try:
            used = terms(parse_expression(text))
        except FaultyExpression as error:
            yield fault(("derived", name), text, f"an expression, but it has {error}")
            continue
        if not used:
            yield fault(("derived", name), text, "an expression of published variables")
        for term in used:
            if term not in choices:
                allowed = "published variables that are not derived"
                yield fault(("derived", name), term, allowed, choices=choices)
    if spec.derived and spec.publish.series != "single":
        yield fault(("derived",), list(spec.derived), 'not applicable unless publish.series is "single"')
    if spec.derived and spec.table is not None:
        yield fault(("derived",), list(spec.derived), "not applicable to a table")
