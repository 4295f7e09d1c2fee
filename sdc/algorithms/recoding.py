"""Parameters of recoding: the search over a lattice of generalisations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Lt
from microguard.sdc.algorithms.parameters import Parameters


@dataclass(frozen=True)
class RecodingParameters(Parameters):
    """Parameters of full-domain generalisation (Samarati 2001; LeFevre, DeWitt and Ramakrishnan 2005)."""

    loss: Literal["granularity", "precision", "discernibility"] = "granularity"
    """What the published levels are chosen by."""
    max_suppressed: Annotated[float, Ge(0), Lt(1)] = 0.01
    """Largest share of records whose quasi-identifiers are all suppressed."""
