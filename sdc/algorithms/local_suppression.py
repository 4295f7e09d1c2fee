"""Parameters of local suppression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from microguard.sdc.algorithms.parameters import Parameters


@dataclass(frozen=True)
class LocalSuppressionParameters(Parameters):
    """Parameters of local suppression (de Waal and Willenborg 1998)."""

    missing: Literal["category", "any_value"] = "category"
    """What a missing value is to k-anonymity: `category`, a category of its own, or `any_value`, so that k
    counts the records that show the values which a record shows."""
