"""Correlated noise on Spark: one aggregation computes the correlations, then each record is perturbed
separately.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from decimal import Decimal
from math import floor, log10

import numpy as np
import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.compat import with_values
from microguard.pipelines.engine.frames import with_constants
from microguard.pipelines.intake.contract import Contract
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.methods.perturbation import RECORD, Perturbation, Written, uniforms
from microguard.schemas.errors import InputRejected
from microguard.sdc.algorithms.correlated_noise import CorrelatedNoiseParameters
from microguard.sdc.perturbation.correlated_noise import definite, factor, with_noise
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

#: Unit of standardised values, which are rounded to integer multiples of it, so that sums are exact in any
#: order.
STEP = 2.0**-20
#: Number of published digits of the noise's standard deviation.
DIGITS = 3
_NOISY = "__noisy"
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 53}


class CorrelatedNoise(Perturbation):
    """Normal noise for numeric variables, with the same correlations as the variables themselves."""

    limits = (
        "Normal noise was added to values: a number may be outside its valid range, for example below 0, "
        "and sums of parts no longer equal published totals.",
    )

    def accept(self, contract: Contract) -> None:
        """Refuse unsigned numbers, because noise may lead below 0."""
        names = self.specification.quasi_identifiers
        unsigned = [name for name in names if pa.types.is_unsigned_integer(contract.schema.field(name).type)]
        if unsigned:
            raise InputRejected(
                f"Variables with noise are unsigned numbers: {', '.join(unsigned)}. Expected signed ones, "
                "because noise may lead below 0. Convert them in the input, for example to int32."
            )

    def perturb(
        self, keyed: DataFrame, screened: ValidatedInput, secret: bytes, written: Written
    ) -> DataFrame:
        """Add noise to each quasi-identifier; missing values remain missing, integers remain integers."""
        names, parameters = self.specification.quasi_identifiers, self.parameters
        assert isinstance(parameters, CorrelatedNoiseParameters)
        means = np.array([screened.scales[name].mean for name in names])
        deviations = np.array([screened.scales[name].deviation for name in names])
        divisors = np.where(deviations > 0, deviations, 1.0)
        sums = _sums(keyed, names, means, deviations)
        lower = factor(definite(_correlations(sums, deviations > 0)))
        # Two releases with equal draws but different covariances would disclose the values, because they give
        # two equations; so the draws depend on the sums. Only exact sums are hashed, because the last bit of
        # derived numbers could depend on the machine.
        noise = repr((parameters, means.tolist(), deviations.tolist(), sums))
        secret = hmac.digest(secret, noise.encode(), "sha256")
        kinds = [keyed.schema[name].dataType for name in names]
        noise_deviations = (deviations * parameters.share**0.5).tolist()
        digits = [_digits(kind, each) for kind, each in zip(kinds, noise_deviations, strict=True)]
        most = [largest(kind) for kind in kinds]

        def noisy(records: pa.Array, *values: pa.Array) -> pa.Array:
            before = np.column_stack([each.to_numpy(zero_copy_only=False) for each in values])
            draws = np.column_stack([uniforms(records, secret, f"noise of {name}") for name in names])
            standard = (before.astype(np.float64) - means) / divisors
            after = with_noise(standard, lower, draws, parameters.share, keep=parameters.keep_covariance)
            after = np.where(deviations > 0, means + divisors * after, before.astype(np.float64))
            columns = []
            for places, limit, each in zip(digits, most, after.T, strict=True):
                rounded = each if places is None else np.round(each, places)
                columns.append(pa.array(np.clip(rounded, -limit, limit), from_pandas=True))
            return pa.StructArray.from_arrays(columns, [f"x{i}" for i in range(len(names))])

        kind = t.StructType([t.StructField(f"x{i}", t.DoubleType()) for i in range(len(names))])
        numbers = [column(name).cast("double") for name in names]
        drawn = with_values(keyed, _NOISY, noisy, kind, [f.col(RECORD), *numbers])
        new = {
            name: f.col(_NOISY)[f"x{i}"].cast(keyed.schema[name].dataType).alias(name)
            for i, name in enumerate(names)
        }
        return drawn.select(*[new.get(name, column(name)) for name in keyed.columns])


def _digits(kind: t.DataType, deviation: float) -> int | None:
    """Return the number of published decimals; None for a constant variable, which remains unchanged."""
    if deviation == 0:
        return None
    return 0 if kind.simpleString() in _BITS else DIGITS - 1 - floor(log10(deviation))


def largest(kind: t.DataType) -> float:
    """Return the largest number of a type that double precision represents; infinity for floating point
    types.
    """
    if isinstance(kind, t.DecimalType):
        limit = Decimal(10) ** (kind.precision - kind.scale)
        most = float(limit - Decimal(10) ** -kind.scale)
        # Spark converts the shortest decimal text that represents a double
        return most if Decimal(repr(most)) < limit else float(np.nextafter(most, 0.0))
    bits = _BITS.get(kind.simpleString())
    return np.inf if bits is None else 2.0 ** (bits - 1) - 1


def _sums(
    frame: DataFrame, names: tuple[str, ...], means: np.ndarray, deviations: np.ndarray
) -> dict[tuple[int, int], tuple[int, int]]:
    """Return for each pair of variables the number of complete records and the sum of products, in units of
    `STEP`^2.

    Pairs with a constant variable are left out.
    """

    def whole(i: int) -> Column:
        standard = (column(names[i]).cast("double") - f.col(f"__mean{i}")) / f.col(f"__deviation{i}")
        return f.rint(standard / f.lit(STEP)).cast("decimal(18,0)")

    varying = np.flatnonzero(deviations > 0).tolist()
    pairs = [(i, j) for i in varying for j in varying if j < i]
    sums = [f.sum(whole(i) * whole(j)).alias(f"p{i}_{j}") for i, j in pairs]
    sums += [f.count(whole(i) * whole(j)).alias(f"n{i}_{j}") for i, j in pairs]
    if not pairs:
        return {}
    constants = {f"__mean{i}": float(means[i]) for i in varying}
    constants |= {f"__deviation{i}": float(deviations[i]) for i in varying}
    row = with_constants(frame, constants).agg(*sums).first()
    assert row is not None
    return {(i, j): (int(row[f"n{i}_{j}"]), int(row[f"p{i}_{j}"] or 0)) for i, j in pairs}


def _correlations(sums: Mapping[tuple[int, int], tuple[int, int]], varies: np.ndarray) -> np.ndarray:
    """Return the correlations of the variables over the complete records; 0 for a constant variable."""
    matrix = np.diag(varies.astype(np.float64))
    for (i, j), (present, products) in sums.items():
        if present > 1:
            found = float(products) * STEP**2 / (present - 1)
            matrix[i, j] = matrix[j, i] = min(max(found, -1.0), 1.0)
    return matrix
