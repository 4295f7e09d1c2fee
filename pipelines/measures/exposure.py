"""Risk before protection, and columns that determine a protected variable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.measures.attribute_disclosure.contradictions import Contradiction, contradictions
from microguard.pipelines.measures.attribute_disclosure.functional_dependencies import (
    Dependency,
    dependencies,
)
from microguard.pipelines.measures.classes import Classes, classes_of
from microguard.schemas.specification.model import WHOLE, Specification


@dataclass(frozen=True)
class Exposure:
    """Risk of the original records by clustering, dependencies on unmodified columns, and the reverse."""

    classes: Mapping[str, Classes]
    dependencies: tuple[Dependency, ...]
    contradictions: tuple[Contradiction, ...]


def exposure(screened: ValidatedInput, specification: Specification) -> Exposure:
    """Compute the risk before protection, and find columns that determine a protected variable."""
    keys = [] if specification.region is None else [specification.region]
    classes = {
        group.name: classes_of(
            screened.frame,
            [*keys, *group.variables],
            specification,
            screened.remaining,
            household=specification.household if group.name == WHOLE else None,
        )
        for group in specification.clusterings
    }
    file = (screened.frame, specification, screened.remaining)
    return Exposure(classes, tuple(dependencies(*file)), tuple(contradictions(*file)))
