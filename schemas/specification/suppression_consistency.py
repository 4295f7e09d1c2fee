"""Checks of `[table]` if cells are suppressed."""

from __future__ import annotations

from collections.abc import Iterator

from microguard.schemas.specification.faults import Fault, fault
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import COSTS, Table


def suppression_faults(spec: Specification, table: Table) -> Iterator[Fault]:
    """Return the faults of a table whose sensitive cells are suppressed."""
    if table.method != "suppression":
        if "suppressed" in table.statuses.values():
            allowed = "safe, sensitive or fixed, unless table.method is suppression"
            yield fault(("table", "statuses"), "suppressed", allowed)
        return
    if table.costs in COSTS and "costs" in table.model_fields_set:
        allowed = f"{', '.join(table.cost_names)} with method suppression"
        yield fault(("table", "costs"), table.costs, allowed, choices=table.cost_names)
    if table.zeros != "all":
        yield fault(("table", "zeros"), table.zeros, '"all" where cells are suppressed and zeros are true')
    for key in ("preserve", "relax"):
        if key in table.model_fields_set:
            allowed = "no such key with method suppression, as published values are the true ones"
            yield fault(("table", key), key, allowed)
    if "outsider" not in table.attackers or len(set(table.attackers)) < len(table.attackers):
        allowed = '"outsider", as everybody is, and further attackers, each once'
        yield fault(("table", "attackers"), list(table.attackers), allowed)
    elif not table.contributors_known and "attackers" in table.model_fields_set and len(table.attackers) > 1:
        allowed = '"outsider" alone, unless table.contributors names the numbers of contributors'
        yield fault(("table", "attackers"), list(table.attackers), allowed)
