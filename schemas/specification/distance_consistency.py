"""Checks of what makes distances between values: the weights of variables, the orders of categories."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.specification.faults import NOTHING, Fault, Path, fault
from schemas.specification.model import Specification


def distance_faults(spec: Specification) -> Iterator[Fault]:
    """Weights and orders of what is not clustered, and orders that are none."""
    yield from _weights(spec)
    yield from _orders(spec)


def _weights(spec: Specification) -> Iterator[Fault]:
    for name, variable in spec.variables.items():
        key = ("variables", name, "variable_weight")
        weight = variable.variable_weight
        if weight == 1.0:
            continue
        if variable.role != "quasi_identifier":
            yield fault(key, weight, "no such key, as only quasi-identifiers are clustered")
        elif spec.method.name == "safe":
            yield fault(key, weight, "1 with SAFE, which has no clusters")


def _orders(spec: Specification) -> Iterator[Fault]:
    """An ordinal quasi-identifier has an order, or bands, which have one; nothing else has."""
    for name, variable in spec.variables.items():
        kind: Path = ("variables", name, "kind")
        order: Path = ("variables", name, "order")
        given = variable.order
        if variable.kind != "ordinal":
            if given is not None:
                yield fault(order, list(given), 'no such key unless kind is "ordinal"')
            continue
        if variable.role != "quasi_identifier":
            yield fault(kind, "ordinal", "nominal, numeric, or no kind, unless role is quasi_identifier")
        elif spec.method.name == "safe":
            yield fault(kind, "ordinal", "nominal with SAFE, which knows no order")
        if variable.bands is not None:
            if given is not None:
                yield fault(
                    order, list(given), "no such key beside bands, whose order is that of the numbers"
                )
        elif given is None:
            yield fault(order, NOTHING, "the categories, lowest first")
        elif len(given) < 2 or len(set(given)) < len(given):
            yield fault(order, list(given), "two categories or more, each once, lowest first")
