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
    """c: ratio of the noise covariance to the covariance of the data."""
    keep_covariance: bool = False
    """Whether values with noise are shrunk towards the means, so that their expected covariance equals that
    of the data. Otherwise it is (1 + c) times the covariance of the data."""
