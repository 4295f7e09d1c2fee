"""Parameters of an algorithm, as the specification gives them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from microguard.schemas.specification.sections import Method
from microguard.sdc.microaggregation.heuristics.genetic import GeneticParams


def cluster_parameters(method: Method) -> dict[str, Any]:
    """Further keywords of `sdc.microaggregation.microaggregate`; none where the specification gives none."""
    given = method.vmdav.given | method.k_ward.given | method.column_generation.given
    if method.genetic.given:
        given["genetic_parameters"] = GeneticParams(**method.genetic.given)
    return given


def combination_parameters(method: Method, name: str, default: object | None = None) -> object | None:
    """What a nominal algorithm is called with; `default` where the specification gives nothing of it.

    Parameters
    ----------
    method : Method
        The section of the specification.
    name : str
        The algorithm that is called.
    """
    from microguard.sdc.nominal.chi_exact import ChiExactParameters
    from microguard.sdc.nominal.methods import CHI_EXACT
    from microguard.sdc.nominal.partitioning.construction import Guidance
    from microguard.sdc.safe.parameters import SafeParams

    if method.two_step is not None:
        return Guidance(method.two_step.gamma, method.two_step.reward)
    if name == CHI_EXACT and method.chi_exact.deviation_weight > 0:
        spent = default if isinstance(default, ChiExactParameters) else ChiExactParameters()
        return replace(spent, deviation_weight=method.chi_exact.deviation_weight)
    return SafeParams(**method.safe.given) if method.safe.given else default
