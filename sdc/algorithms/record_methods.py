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
    risk: tuple[str, ...] = ()
    """Quasi-identifiers whose combination makes a record a risk if fewer than k have it in an area; by
    default all others."""
    similar: tuple[tuple[str, ...], ...] = ()
    """Profiles in the order in which they are tried: two units are exchanged if they agree in all variables
    of a profile. With households `household_size` is one. By default the household size, then any unit."""
    rate: Annotated[float, Ge(0), Le(1)] = 0.05
    """Least share of the units that are exchanged."""
