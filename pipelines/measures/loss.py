"""Measure what protection did: loss, control tables, risk after, linkage. Additive and exact.

Sums over records were made in the seam, per block, in units that all blocks share; here they are added
up, in the order of the blocks. Tables are counted in Spark before and after.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pipelines.intake.scales import Scale
from pipelines.records.block_reports import BlockReports


def loss(protection: BlockReports, scales: Mapping[str, Scale]) -> dict[str, Any]:
    """Section ``loss`` of one clustering."""
    moments = protection.moments
    return {
        "sse": float(moments.sse.sum()),
        "sst": float(moments.sst.sum()),
        "information_loss": moments.information_loss,
        "objective": _total(protection, "objective"),
        "lower_bound": _total(protection, "lower_bound"),
        "whole_file_lower_bound": _total(protection, "file_bound"),
        "by_variable": {
            name: float(sse / sst) if sst > 0 else 0.0
            for name, sse, sst in zip(scales, moments.sse, moments.sst, strict=True)
        },
    }


def _total(protection: BlockReports, name: str) -> float | None:
    """Sum over the blocks, None where a block has no such number."""
    found = [report[name] for report in protection.blocks if report.get(name) is not None]
    return math.fsum(found) if len(found) == len(protection.blocks) else None


def moments_of(protection: BlockReports, scales: Mapping[str, Scale]) -> dict[str, dict[str, float]]:
    """Section ``moments``: means and variances in the units of the variables."""
    means, variances = protection.moments.means(), protection.moments.variances()
    return {
        name: {
            "mean_before": float(scale.mean + scale.divisor * means[0][i]),
            "mean_after": float(scale.mean + scale.divisor * means[1][i]),
            "variance_before": float(scale.divisor**2 * variances[0][i]),
            "variance_after": float(scale.divisor**2 * variances[1][i]),
        }
        for i, (name, scale) in enumerate(scales.items())
    }


def correlations_of(protection: BlockReports, scales: Mapping[str, Scale]) -> dict[str, Any]:
    """Section ``correlations``; None where a variable is constant."""
    before, after = protection.moments.correlations()
    return {"variables": list(scales), "before": _matrix(before), "after": _matrix(after)}


def _matrix(values: np.ndarray) -> list[list[float | None]]:
    return [[None if np.isnan(value) else float(value) for value in row] for row in values]
