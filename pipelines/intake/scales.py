"""Exact mean and scale of each numeric quasi-identifier: the same whatever the order of the records."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from pipelines.engine.column_names import column

#: Bits of the fixed-point numbers that means and scales are summed from, relative to the largest magnitude.
FIXED_POINT_BITS = 30


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation (ddof=1) of a numeric variable over all accepted records.

    Attributes
    ----------
    mean, deviation : float
        `deviation` is 0 where the variable is constant.
    present : int
        Records that have a value.
    """

    mean: float
    deviation: float
    present: int

    @property
    def divisor(self) -> float:
        """What standardising divides by: 1 for a constant variable, which has nothing to lose."""
        return self.deviation if self.deviation > 0.0 else 1.0


def scales(frame: DataFrame, names: tuple[str, ...], magnitude: Mapping[str, float]) -> dict[str, Scale]:
    """Mean and scale of numeric variables, the same for any partitioning.

    Each value is rounded to a fixed-point integer of `FIXED_POINT_BITS` bits below the largest magnitude;
    integers and their squares are summed exactly, squares in two halves so that no sum overflows.
    """
    metrics, exponents = [], {}
    for i, name in enumerate(names):
        exponents[name] = FIXED_POINT_BITS - (math.frexp(magnitude[name])[1] if magnitude[name] > 0 else 0)
        half = exponents[name] // 2
        scaled = column(name).cast("double") * f.lit(2.0**half) * f.lit(2.0 ** (exponents[name] - half))
        whole = f.rint(scaled).cast("bigint")
        metrics += [
            f.count(whole).alias(f"n{i}"),
            f.sum(whole).alias(f"s{i}"),
            f.sum(f.shiftright(whole * whole, 30)).alias(f"h{i}"),
            f.sum((whole * whole).bitwiseAND(f.lit((1 << 30) - 1))).alias(f"l{i}"),
        ]
    if not names:
        return {}
    row = frame.agg(*metrics).first()
    assert row is not None
    by_variable = {}
    for i, name in enumerate(names):
        n, total = int(row[f"n{i}"]), int(row[f"s{i}"] or 0)
        squares = (int(row[f"h{i}"] or 0) << 30) + int(row[f"l{i}"] or 0)
        variance = (n * squares - total * total) / (n * (n - 1)) if n > 1 else 0.0  # of exact integers
        unit = math.ldexp(1.0, -exponents[name])
        by_variable[name] = Scale(total / max(n, 1) * unit, math.sqrt(variance) * unit, n)
    return by_variable
