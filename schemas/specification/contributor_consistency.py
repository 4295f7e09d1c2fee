"""Checks of the keys of `[table]` on contributors: holdings, requests and waivers."""

from __future__ import annotations

from collections.abc import Iterator

from microguard.schemas.roles import PUBLISHED
from microguard.schemas.specification.faults import NOTHING, Fault, fault
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import Table

COLUMNS = ("holding", "request", "waiver")


def contributor_faults(spec: Specification, table: Table) -> Iterator[Fault]:
    """Return the faults of holdings, requests and waivers."""
    for key in COLUMNS:
        name = getattr(table, key)
        if name is None:
            continue
        if table.source != "microdata":
            allowed = "no such key, as the contributors of finished cells are known by their number alone"
            yield fault(("table", key), name, allowed)
        elif table.kind == "frequency" and (key != "holding" or table.method != "suppression"):
            yield fault(("table", key), name, "no such key for counts")
        variable = spec.variables.get(name)
        if variable is None or variable.role not in PUBLISHED - {"weight"} or variable.kind == "numeric":
            yield fault(("table", key), name, "a column of [variables] that is nominal")
        elif name in table.columns:
            yield fault(("table", key), name, "a column that is no dimension")
    if table.request is not None and table.waiver is not None:
        allowed = "no such key next to table.request, by which only those who ask are protected"
        yield fault(("table", "waiver"), table.waiver, allowed)
    if (table.request is None) != (not table.requests):
        allowed = "the column of requests, together with the shares of table.requests"
        yield fault(("table", "request"), table.request or NOTHING, allowed)
    if table.waiver is None and "waived" in table.model_fields_set:
        yield fault(("table", "waived"), list(table.waived), "no such key without table.waiver")
