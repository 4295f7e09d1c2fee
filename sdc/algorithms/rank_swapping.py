"""Parameters of rank swapping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Gt, Le
from microguard.sdc.algorithms.parameters import Parameters


@dataclass(frozen=True)
class RankSwappingParameters(Parameters):
    """Parameters of rank swapping (Moore 1996)."""

    window: Annotated[float, Gt(0), Le(1)] = 0.05
    """Largest difference in ranks of two records that exchange a value, as a share of the records."""
