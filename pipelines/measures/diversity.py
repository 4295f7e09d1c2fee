"""Distinct values of the sensitive variables in a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pipelines.records.block_reports import BlockReports


def diversity_of(protections: Mapping[str, BlockReports], sensitive: Iterable[str]) -> dict[str, int]:
    """Least number of distinct values of each sensitive variable in a cluster, where it was asked for."""
    reports = [
        report["diversity"]
        for protection in protections.values()
        for report in protection.blocks
        if "diversity" in report
    ]
    return {name: min(report[name] for report in reports) for name in sensitive if reports}
