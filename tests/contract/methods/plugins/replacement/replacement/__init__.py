"""PRAM for microguard: its name, its parameters, and the statement that it has no formal guarantee."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le
from microguard.schemas.method_registry import MethodRow
from microguard.sdc.algorithms.parameters import Parameters


@dataclass(frozen=True)
class ReplacementParameters(Parameters):
    """Parameters of the transition matrix."""

    stay: Annotated[float, Ge(0), Le(1)] = 0.8
    """Probability that a value is kept; else it is drawn from the distribution of its variable."""


METHOD = MethodRow(
    "replacement",
    "records",
    ("measured only",),
    "replacement.adapter:Replacement",
    ReplacementParameters,
    kinds=("nominal",),
)
