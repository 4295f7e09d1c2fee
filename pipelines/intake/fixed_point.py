"""Compute exact means and standard deviations by fixed-point sums, independent of the order of records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.frames import with_constants
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

#: Bits of the fixed-point numbers below the largest magnitude, from which means and deviations are summed.
FIXED_POINT_BITS = 30


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation (ddof=1) of a numeric variable over all accepted records.

    Attributes
    ----------
    mean, deviation : float
        `deviation` is 0 if the variable is constant.
    present : int
        Number of records with a value.
    """

    mean: float
    deviation: float
    present: int

    @property
    def divisor(self) -> float:
        """Divisor for standardisation: the deviation, or 1 for a constant variable."""
        return self.deviation if self.deviation > 0.0 else 1.0


def with_units(frame: DataFrame, names: Sequence[str], magnitude: Mapping[str, float]) -> DataFrame:
    """Add the factors of fixed-point numbers, which bound the largest value, for `fixed_point_sums`."""
    factors: dict[str, float] = {}
    for i, name in enumerate(names):
        exponent = _exponent(magnitude[name])
        half = exponent // 2  # one factor alone could overflow
        factors |= {f"__u0_{i}": 2.0**half, f"__u1_{i}": 2.0 ** (exponent - half)}
    return with_constants(frame, factors)


def fixed_point_sums(names: Sequence[str]) -> list[Column]:
    """Return the aggregates from which `scales_from_sums` computes means and deviations.

    The frame is from `with_units`.

    Each value is written as two integers of `FIXED_POINT_BITS` bits: a fixed-point number below the largest
    magnitude, and the remainder. Both, their squares and their products are summed exactly, products in two
    halves so that no sum overflows. A change of unit thus changes the result in its last bits only.
    """
    sums = []
    for i, name in enumerate(names):
        scaled = column(name).cast("double") * f.col(f"__u0_{i}") * f.col(f"__u1_{i}")
        whole = f.rint(scaled).cast("bigint")
        rest = f.rint((scaled - f.rint(scaled)) * f.lit(2.0**FIXED_POINT_BITS)).cast("bigint")
        sums += [
            f.count(whole).alias(f"__n{i}"),
            f.sum(whole).alias(f"__s{i}"),
            f.sum(rest).alias(f"__r{i}"),
        ]
        for at, product in enumerate((whole * whole, whole * rest, rest * rest)):
            sums += [
                f.sum(f.shiftright(product, 30)).alias(f"__h{at}_{i}"),
                f.sum(product.bitwiseAND(f.lit((1 << 30) - 1))).alias(f"__l{at}_{i}"),
            ]
    return sums


def scales_from_sums(
    parts: pa.Table, names: Sequence[str], magnitude: Mapping[str, float]
) -> dict[str, Scale]:
    """Compute mean and scale of numeric variables from the `fixed_point_sums` of the parts, one row each."""
    by_variable = {}
    for i, name in enumerate(names):

        def total(key: str, i: int = i) -> int:
            return sum(filter(None, parts[f"__{key}{i}"].to_pylist()))

        n = total("n")
        whole, mixed, rest = ((total(f"h{at}_") << 30) + total(f"l{at}_") for at in range(3))
        # All terms are integers, in units of the remainder.
        values = (total("s") << FIXED_POINT_BITS) + total("r")
        squares = (whole << 2 * FIXED_POINT_BITS) + (mixed << FIXED_POINT_BITS + 1) + rest
        variance = (n * squares - values * values) / (n * (n - 1)) if n > 1 else 0.0
        unit = math.ldexp(1.0, -_exponent(magnitude[name]) - FIXED_POINT_BITS)
        by_variable[name] = Scale(values / max(n, 1) * unit, math.sqrt(variance) * unit, n)
    return by_variable


def _exponent(magnitude: float) -> int:
    return FIXED_POINT_BITS - (math.frexp(magnitude)[1] if magnitude > 0 else 0)
