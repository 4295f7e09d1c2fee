"""Parameters of targeted record swapping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le
from microguard.sdc.algorithms.parameters import Parameters


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
