"""Columns that a release publishes unmodified, and the variables that are protected from them."""

from __future__ import annotations

from itertools import chain

from microguard.schemas.method_registry import method_row
from microguard.schemas.specification.model import Specification
from pydantic import ValidationError


def modified_variables(specification: Specification) -> tuple[str, ...]:
    """Return the quasi-identifiers that the method changes: the exchanged areas of swapping, otherwise all.

    Swapping whose parameters are faulty changes all of them, too; their faults are reported elsewhere.
    """
    if not specification.swapped:
        return specification.quasi_identifiers
    from microguard.sdc.algorithms.swapping import SwappingParameters  # only such releases need it

    try:
        parameters = specification.method.method_parameters(method_row("records", specification.method.name))
    except ValidationError:
        return specification.quasi_identifiers
    assert isinstance(parameters, SwappingParameters)
    exchanged = {*parameters.geography, *chain.from_iterable(parameters.hierarchies)}
    return tuple(name for name in specification.quasi_identifiers if name in exchanged)


def unmodified_columns(specification: Specification) -> tuple[str, ...]:
    """Return the published columns that the method does not change, also if they are quasi-identifiers."""
    modified = modified_variables(specification)
    kept = (name for name in specification.quasi_identifiers if name not in modified)
    return (*specification.published_as_it_is, *kept)
