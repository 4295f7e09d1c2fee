"""Parameters of record methods that offer no choice of algorithm.

They share one file, because every run reads all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Lt
from microguard.sdc.algorithms.parameters import Parameters, Variables

#: Maximum number of variables of local suppression: a pattern of missing values is a 64-bit number.
MOST_SUPPRESSED = 63


@dataclass(frozen=True)
class LocalSuppressionParameters(Parameters):
    """Parameters of local suppression (de Waal and Willenborg 1998)."""

    missing: Literal["category", "any_value"] = "category"
    """How k-anonymity counts a missing value. `category`: as a category of its own. `any_value`: as equal to
    every value, so that k counts all records that are compatible with the published values of a record."""

    def unfit(self, variables: Variables) -> Iterator[tuple[str, object, str]]:
        """Refuse too many variables, and release folders combined with ``missing = "any_value"``."""
        found = len(variables.kinds)
        if found > MOST_SUPPRESSED:
            allowed = f"at most {MOST_SUPPRESSED} quasi-identifiers with this method, found {found}"
            yield "", "local_suppression", allowed
        if self.missing == "any_value" and variables.folders is not None:
            yield (
                "missing",
                self.missing,
                "category with publish.partition_by, because records of a folder are counted by category",
            )


@dataclass(frozen=True)
class RecodingParameters(Parameters):
    """Parameters of full-domain generalisation (Samarati 2001; LeFevre, DeWitt and Ramakrishnan 2005)."""

    loss: Literal["granularity", "precision", "discernibility"] = "granularity"
    """Loss measure that selects the levels to publish."""
    max_suppressed: Annotated[float, Ge(0), Lt(1)] = 0.01
    """Maximum share of records whose quasi-identifiers are all suppressed."""
