"""Risk before protection, and the columns that give a protected one away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipelines.intake.screen import ScreenedInput
from pipelines.measures.determination import Dependency, dependencies
from pipelines.measures.risk import Risk, risk
from schemas.specification.model import Specification


@dataclass(frozen=True)
class Exposure:
    """What a reader of the original records would learn, by clustering, and what columns give away."""

    risks: Mapping[str, Risk]
    dependencies: tuple[Dependency, ...]


def exposure(screened: ScreenedInput, specification: Specification) -> Exposure:
    """Risk before protection, and the columns that determine a protected one."""
    keys = [] if specification.region is None else [specification.region]
    risks = {
        group.name: risk(
            screened.frame, [*keys, *group.variables], specification.release.k, specification.counted
        )
        for group in specification.clusterings
    }
    return Exposure(risks, tuple(dependencies(screened.frame, specification)))
