"""Columns that a release publishes unmodified, and the variables that are protected from them."""

from __future__ import annotations

from itertools import chain

from microguard.schemas.method_registry import method_row
from microguard.schemas.specification.model import Specification
from pydantic import ValidationError


def exchanged_levels(specification: Specification) -> tuple[tuple[str, ...], ...]:
    """Return the exchanged areas of swapping by level, each from coarse to fine; empty for other methods.

    It is also empty if the parameters are faulty; their faults are reported elsewhere.
    """
    if not specification.swapped:
        return ()
    from microguard.sdc.algorithms.swapping import SwappingParameters  # only such releases need it

    try:
        parameters = specification.method.method_parameters(method_row("records", specification.method.name))
    except ValidationError:
        return ()
    assert isinstance(parameters, SwappingParameters)
    return parameters.levels if parameters.geography and all(parameters.hierarchies) else ()


def modified_variables(specification: Specification) -> tuple[str, ...]:
    """Return the quasi-identifiers that the method changes: the exchanged areas of swapping, otherwise all.

    Swapping whose parameters are faulty changes all of them, too.
    """
    levels = exchanged_levels(specification)
    exchanged = {*chain.from_iterable(levels)} if levels else {*specification.quasi_identifiers}
    return tuple(name for name in specification.quasi_identifiers if name in exchanged)


def unmodified_columns(specification: Specification) -> tuple[str, ...]:
    """Return the published columns that the method does not change, also if they are quasi-identifiers."""
    modified = modified_variables(specification)
    kept = (name for name in specification.quasi_identifiers if name not in modified)
    return (*specification.published_as_it_is, *kept)
