"""Clusters whose total hangs on few contributors: the (n, k) rule."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.records.block_reports import BlockReports
from schemas.specification.model import Specification

#: Dominance is counted whether the gate limits it or not: one contributor above 85 percent of the total.
USUAL_DOMINANCE = (1, 85.0)


def dominance_rule(specification: Specification) -> tuple[int, float]:
    """The (n, k) rule that clusters are counted by: the gate's, or the usual one where it has none."""
    rule = specification.quality.dominance
    return USUAL_DOMINANCE if rule is None else (rule.n, rule.k)


def dominance_of(
    protection: BlockReports, names: Iterable[str], specification: Specification
) -> dict[str, dict[str, float]]:
    """Section ``dominance``: the rule, clusters, and those that fail it, by variable."""
    n, k = dominance_rule(specification)
    clusters = sum(report["clusters"] for report in protection.blocks)
    return {
        name: {
            "n": n,
            "k": k,
            "clusters": clusters,
            "failing": sum(report["dominated"][name] for report in protection.blocks),
        }
        for name in names
    }
