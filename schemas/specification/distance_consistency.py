"""Checks of what makes distances between values: the weights of variables."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.specification.faults import Fault, fault
from schemas.specification.model import Specification


def distance_faults(spec: Specification) -> Iterator[Fault]:
    """Weights of what is not clustered."""
    for name, variable in spec.variables.items():
        key = ("variables", name, "variable_weight")
        weight = variable.variable_weight
        if weight == 1.0:
            continue
        if variable.role != "quasi_identifier":
            yield fault(key, weight, "no such key, as only quasi-identifiers are clustered")
        elif spec.method.name == "safe":
            yield fault(key, weight, "1 with SAFE, which has no clusters")
