"""Parameters of a nominal algorithm, as the specification gives them."""

from __future__ import annotations

from dataclasses import replace

from schemas.specification.sections import Method
from sdc.nominal.chi_exact import ChiExactParameters
from sdc.nominal.methods import CHI_EXACT
from sdc.nominal.partitioning.construction import Guidance
from sdc.safe.parameters import SafeParams


def parameters_of(method: Method, name: str, default: object | None = None) -> object | None:
    """What the algorithm is called with; `default` where the specification gives nothing of it.

    Parameters
    ----------
    method : Method
        The section of the specification.
    name : str
        The algorithm that is called.
    """
    if method.two_step is not None:
        return Guidance(method.two_step.gamma, method.two_step.reward)
    if name == CHI_EXACT and method.chi_exact.deviation_weight > 0:
        spent = default if isinstance(default, ChiExactParameters) else ChiExactParameters()
        return replace(spent, deviation_weight=method.chi_exact.deviation_weight)
    return SafeParams(**method.safe.given) if method.safe.given else default
