"""Compute the scales of a whole frame at once; a run computes them from the sums of its strata."""

from __future__ import annotations

from collections.abc import Mapping

from microguard.pipelines.intake.fixed_point import Scale, scales_from_sums
from microguard.pipelines.intake.part_sums import part_sums
from pyspark.sql import DataFrame
from pyspark.sql import functions as f


def compute_scales(frame: DataFrame, magnitude: Mapping[str, float]) -> dict[str, Scale]:
    """Compute the `Scale` of each numeric variable; `magnitude` has its largest absolute value."""
    return scales_from_sums(part_sums(frame, {"all": f.lit(0)}, magnitude), list(magnitude), magnitude)
