"""Checks of distances between values: weights of variables, orders, trees and costs."""

from __future__ import annotations

from collections.abc import Iterator

from microguard.schemas.specification.faults import NOTHING, Fault, Path, fault
from microguard.schemas.specification.model import Specification


def distance_faults(spec: Specification) -> Iterator[Fault]:
    """Return the faults of weights, orders, trees and costs: those of variables that are not clustered, and
    invalid ones.
    """
    yield from _weights(spec)
    yield from _orders(spec)
    yield from _trees(spec)
    yield from _costs(spec)


def _weights(spec: Specification) -> Iterator[Fault]:
    for name, variable in spec.variables.items():
        key = ("variables", name, "variable_weight")
        weight = variable.variable_weight
        if weight == 1.0:
            continue
        if variable.role != "quasi_identifier":
            yield fault(key, weight, "no such key, because only quasi-identifiers are clustered")
        elif spec.method.name == "safe":
            yield fault(key, weight, "1 with SAFE, which has no clusters")


def _orders(spec: Specification) -> Iterator[Fault]:
    """Require an order or bands for each ordinal quasi-identifier; refuse an order for other variables."""
    for name, variable in spec.variables.items():
        order: Path = ("variables", name, "order")
        given = variable.order
        if variable.kind != "ordinal":
            if given is not None:
                yield fault(order, list(given), 'no such key unless kind is "ordinal"')
            continue
        yield from _unheeded(spec, name)
        if variable.bands is not None:
            if given is not None:
                yield fault(
                    order, list(given), "no such key together with bands, whose order is that of the numbers"
                )
        elif given is None:
            yield fault(order, NOTHING, "the categories, lowest first")
        elif len(given) < 2 or len(set(given)) < len(given):
            yield fault(order, list(given), "two categories or more, each once, lowest first")


def _trees(spec: Specification) -> Iterator[Fault]:
    for name, variable in spec.variables.items():
        if variable.kind == "hierarchical":
            yield from _unheeded(spec, name)
            if variable.hierarchy is None:
                allowed = "a CSV with one column per level, finest first"
                yield fault(("variables", name, "hierarchy"), NOTHING, allowed)


def _costs(spec: Specification) -> Iterator[Fault]:
    for name, variable in spec.variables.items():
        key: Path = ("variables", name, "costs")
        if variable.costs is None:
            continue
        if variable.kind != "nominal" or variable.role != "quasi_identifier":
            allowed = 'no such key unless role is quasi_identifier and kind "nominal"'
            yield fault(key, variable.costs, allowed)
        elif spec.method.name == "safe":
            yield fault(key, variable.costs, "no such key with SAFE, which uses no distances")


def _unheeded(spec: Specification, name: str) -> Iterator[Fault]:
    """Refuse kinds of variables with distances if no records are clustered."""
    variable, key = spec.variables[name], ("variables", name, "kind")
    if variable.role != "quasi_identifier":
        yield fault(key, variable.kind, "nominal, numeric, or no kind, unless role is quasi_identifier")
