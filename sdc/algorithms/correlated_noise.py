"""Parameters of correlated noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Gt, Le
from microguard.sdc.algorithms.parameters import Parameters


@dataclass(frozen=True)
class CorrelatedNoiseParameters(Parameters):
    """Parameters of correlated noise (Kim 1986)."""

    share: Annotated[float, Gt(0), Le(10)] = 0.1
    """c: the covariance of the noise over that of the data."""
    keep_covariance: bool = False
    """Whether values with noise are shrunk towards the means, so that the expected covariance is that of the
    data; else it is 1 + c times that."""
