"""Parameters of methods of records that have no algorithms to choose from: one file, as a run reads all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le, Lt
from microguard.sdc.algorithms.parameters import Parameters


@dataclass(frozen=True)
class LocalSuppressionParameters(Parameters):
    """Parameters of local suppression (de Waal and Willenborg 1998)."""

    missing: Literal["category", "any_value"] = "category"
    """What a missing value is to k-anonymity: `category`, a category of its own, or `any_value`, so that k
    counts the records that show the values which a record shows."""


@dataclass(frozen=True)
class RecodingParameters(Parameters):
    """Parameters of full-domain generalisation (Samarati 2001; LeFevre, DeWitt and Ramakrishnan 2005)."""

    loss: Literal["granularity", "precision", "discernibility"] = "granularity"
    """What the published levels are chosen by."""
    max_suppressed: Annotated[float, Ge(0), Lt(1)] = 0.01
    """Largest share of records whose quasi-identifiers are all suppressed."""


@dataclass(frozen=True)
class SwappingParameters(Parameters):
    """Parameters of targeted record swapping (Office for National Statistics 2021; Eurostat 2019)."""

    geography: tuple[str, ...]
    """Quasi-identifiers that are exchanged: levels of a nested geography, coarse to fine."""
    hierarchies: tuple[tuple[str, ...], ...] = ()
    """Further levels, which do not nest in those of `geography`. Each list names the level of `geography`
    within whose areas units are exchanged, and then quasi-identifiers from coarse to fine; or one
    quasi-identifier alone, exchanged across the whole file."""
    risk: tuple[str, ...] = ()
    """Quasi-identifiers whose combination makes a record a risk if fewer than k have it in an area; by
    default all others."""
    similar: tuple[tuple[str, ...], ...] = ()
    """Profiles in the order in which they are tried: two units are exchanged if they agree in all variables
    of a profile. With households `household_size` is one. By default the household size, then any unit."""
    risk_values: tuple[str, ...] = ()
    """Variables of role `risk` with the risk of each record, in place of k: one for all levels, or one for
    each level of `geography`. A household has the largest risk of its records."""
    risk_threshold: Annotated[float, Ge(0)] = 0.0
    """With `risk_values`: a record is at risk from this value on; a missing value is a risk."""
    rate: Annotated[float, Ge(0), Le(1)] = 0.05
    """Least share of the units that are exchanged."""

    @property
    def levels(self) -> tuple[tuple[str, ...], ...]:
        """Return the levels in the order of their exchange, each as its areas from coarse to fine.

        The coarsest level of the geography comes first, then further levels of the whole file; the finest
        level of the geography comes last, as the rate is met there.
        """
        chains = [self.geography[: depth + 1] for depth in range(len(self.geography))]
        whole: list[tuple[str, ...]] = []
        within: list[tuple[str, ...]] = []
        for names in self.hierarchies:
            place = self.geography.index(names[0]) if names[0] in self.geography else -1
            start, further = (self.geography[: place + 1], names[1:]) if place >= 0 else ((), names)
            (within if start else whole).extend(
                (*start, *further[: depth + 1]) for depth in range(len(further))
            )
        first = chains[:1] if len(chains) > 1 else []
        return (*first, *whole, *chains[1:-1], *within, chains[-1])
