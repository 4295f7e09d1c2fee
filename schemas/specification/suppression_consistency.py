"""Checks of `[table]` if cells are suppressed, and checks of the keys on contributors."""

from __future__ import annotations

from collections.abc import Iterator

from microguard.schemas.roles import PUBLISHED
from microguard.schemas.specification.faults import NOTHING, Fault, fault
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import COSTS, Table


def suppression_faults(spec: Specification, table: Table) -> Iterator[Fault]:
    """Return the faults of a table whose sensitive cells are suppressed."""
    if table.method != "suppression":
        if "suppressed" in table.statuses.values():
            allowed = "safe, sensitive or fixed, unless table.method is suppression"
            yield fault(("table", "statuses"), "suppressed", allowed)
        return
    for key, name in (*(("tables", name) for name in table.columns), ("value", table.value_name)):
        if name.casefold() == "status":
            yield fault(
                ("table", key), name, "another name, because the statuses of the cells have this name"
            )
    if table.costs in COSTS and "costs" in table.model_fields_set:
        allowed = f"{', '.join(table.cost_names)} with method suppression"
        yield fault(("table", "costs"), table.costs, allowed, choices=table.cost_names)
    if table.zeros != "all":
        yield fault(
            ("table", "zeros"), table.zeros, '"all", because cells are suppressed and zeros are true values'
        )
    for key in ("preserve", "relax"):
        if key in table.model_fields_set:
            allowed = "no such key with method suppression, because published values are the true values"
            yield fault(("table", key), key, allowed)
    if "outsider" not in table.attackers or len(set(table.attackers)) < len(table.attackers):
        allowed = '"outsider", which everybody is, and further attackers, each once'
        yield fault(("table", "attackers"), list(table.attackers), allowed)
    elif not table.contributors_known and "attackers" in table.model_fields_set and len(table.attackers) > 1:
        allowed = 'only "outsider", unless table.contributors names the numbers of contributors'
        yield fault(("table", "attackers"), list(table.attackers), allowed)


COLUMNS = ("holding", "request", "waiver")


def contributor_faults(spec: Specification, table: Table) -> Iterator[Fault]:
    """Return the faults of the keys on holdings, requests for protection and waivers."""
    for key in COLUMNS:
        name = getattr(table, key)
        if name is None:
            continue
        if table.source != "microdata":
            allowed = "no such key, because only the numbers of contributors of finished cells are known"
            yield fault(("table", key), name, allowed)
        elif table.kind == "frequency" and (key != "holding" or table.method != "suppression"):
            yield fault(("table", key), name, "no such key for counts")
        variable = spec.variables.get(name)
        roles = PUBLISHED - {"weight"} | ({"household"} if key == "holding" else set())
        if variable is None or variable.role not in roles or variable.kind == "numeric":
            yield fault(("table", key), name, "a column of [variables] that is nominal")
        elif name in table.columns:
            yield fault(("table", key), name, "a column that is no dimension")
    if table.request is not None and table.waiver is not None:
        allowed = (
            "no such key together with table.request, by which only requesting contributors are protected"
        )
        yield fault(("table", "waiver"), table.waiver, allowed)
    if (table.request is None) != (not table.requests):
        allowed = "the column of requests, together with the shares of table.requests"
        yield fault(("table", "request"), table.request or NOTHING, allowed)
    if table.waiver is None and "waived" in table.model_fields_set:
        yield fault(("table", "waived"), list(table.waived), "no such key without table.waiver")
