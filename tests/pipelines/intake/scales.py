"""Scales of a whole frame at once; a run computes them from the sums of its strata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from microguard.pipelines.intake.fixed_point import Scale, fixed_point_sums, scales_from_sums, with_units
from pyspark.sql import DataFrame


def compute_scales(
    frame: DataFrame, names: Sequence[str], magnitude: Mapping[str, float]
) -> dict[str, Scale]:
    """Compute the `Scale` of each numeric variable; `magnitude` has its largest absolute value."""
    sums = with_units(frame, names, magnitude).agg(*fixed_point_sums(names))
    return scales_from_sums(sums.toArrow(), names, magnitude)
