"""Exact means and standard deviations by fixed-point sums, which do not depend on the order of records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

#: Number of fixed-point bits below the largest magnitude; means and deviations are summed in this precision.
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
        """Return the divisor for standardisation: the standard deviation, or 1 for a constant variable."""
        return self.deviation if self.deviation > 0.0 else 1.0


def fixed_point_columns(place: int, values: np.ndarray, magnitude: float) -> dict[str, pa.Array]:
    """Return the integer columns whose sums are the input of `scales_from_sums`.

    Each value is written as two integers of `FIXED_POINT_BITS` bits: a fixed-point number below the largest
    magnitude, and the remainder. Both, their squares and their products are summed exactly, products in two
    halves so that no sum overflows. A change of unit thus changes the result in its last bits only.

    Parameters
    ----------
    place : int
        Position of the variable, which is part of the names of the columns.
    values : (n,) array
        NaN is missing.
    magnitude : float
        Largest absolute value of the variable in all parts.
    """
    missing = np.isnan(values)
    scaled = np.ldexp(np.where(missing, 0.0, values), _exponent(magnitude))
    rounded = np.rint(scaled)
    whole = rounded.astype(np.int64)
    rest = np.rint((scaled - rounded) * 2.0**FIXED_POINT_BITS).astype(np.int64)
    columns = {f"__s{place}": whole, f"__r{place}": rest}
    for at, product in enumerate((whole * whole, whole * rest, rest * rest)):
        columns |= {
            f"__h{at}_{place}": product >> FIXED_POINT_BITS,
            f"__l{at}_{place}": product & ((1 << FIXED_POINT_BITS) - 1),
        }
    return {key: pa.array(integers, mask=missing) for key, integers in columns.items()}


def fixed_point_sums(number: int) -> dict[str, tuple[str, str]]:
    """Return the column and aggregate of each sum of `fixed_point_columns`, by result name, for a number of
    variables.
    """
    sums: dict[str, tuple[str, str]] = {}
    for i in range(number):
        sums[f"__n{i}"] = (f"__s{i}", "count")
        halves = [f"__{half}{at}_{i}" for at in range(3) for half in "hl"]
        sums |= {name: (name, "sum") for name in (f"__s{i}", f"__r{i}", *halves)}
    return sums


def totals_from_fixed_point(parts: pa.Table, place: int, magnitude: float) -> tuple[np.ndarray, np.ndarray]:
    """Return number and total of a variable's values in each part; the total is NaN if a part has no
    value.
    """
    count, whole, rest = (parts[f"__{key}{place}"].to_numpy().astype(np.float64) for key in ("n", "s", "r"))
    exponent = -_exponent(magnitude)
    total = np.ldexp(whole, exponent) + np.ldexp(rest, exponent - FIXED_POINT_BITS)
    return count, np.where(count > 0, total, np.nan)


def scales_from_sums(
    parts: pa.Table, names: Sequence[str], magnitude: Mapping[str, float]
) -> dict[str, Scale]:
    """Compute mean and scale of numeric variables from the `fixed_point_sums` of the parts, one row
    per part.
    """
    by_variable = {}
    for i, name in enumerate(names):

        def total(key: str, i: int = i) -> int:
            return sum(filter(None, parts[f"__{key}{i}"].to_pylist()))

        n = total("n")
        whole, mixed, rest = ((total(f"h{at}_") << 30) + total(f"l{at}_") for at in range(3))
        # all terms are integers, in units of the remainder
        values = (total("s") << FIXED_POINT_BITS) + total("r")
        squares = (whole << 2 * FIXED_POINT_BITS) + (mixed << FIXED_POINT_BITS + 1) + rest
        variance = (n * squares - values * values) / (n * (n - 1)) if n > 1 else 0.0
        unit = math.ldexp(1.0, -_exponent(magnitude[name]) - FIXED_POINT_BITS)
        by_variable[name] = Scale(values / max(n, 1) * unit, math.sqrt(variance) * unit, n)
    return by_variable


def _exponent(magnitude: float) -> int:
    return FIXED_POINT_BITS - (math.frexp(magnitude)[1] if magnitude > 0 else 0)
