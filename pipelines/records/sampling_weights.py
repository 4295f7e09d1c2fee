"""Sampling weights in clusters: the weight of each record in a mean or a vote.

The weight is published as it is. So no record may have too large a share of a mean or a vote, and no digit of
a mean may reveal which record has which value; `sdc` has the rules. They read published weights, and one
rounding step for the whole file, so that merged clusters and trimmed weights reveal no value.

If k counts units or households, their records have one share, weighted or not: a class of twelve records of
one unit and one each of two others holds three units, and its mean is the first one's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from microguard.pipelines.engine.column_names import column
from microguard.pipelines.engine.row_hash import content_of
from microguard.pipelines.intake.fixed_point import Scale, scales
from microguard.pipelines.records.coordinates import numbers
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.sections import Group
from microguard.sdc.clusters.codes import category_codes
from microguard.sdc.clusters.granularity import step_of
from microguard.sdc.clusters.weight_shares import LARGEST_VOTE, largest_share, spread, trimmed
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

#: Records whose values say what their step is; a hash of their contents draws them.
SAMPLE = 50_000
_PLACES = 1 << 30


@dataclass(frozen=True)
class SamplingWeights:
    """The sampling weight of a clustering.

    Attributes
    ----------
    name : str or None
        Its variable; None where every record counts for one.
    mean : float
        Of all records: weights are counted in units of it, so that sums over records stay sums of records.
    steps : mapping of numeric variable to Fraction
        What their means are rounded to.
    k : int
    counted : str or None
        What k counts, where it is not records: whose weights are one share.
    """

    name: str | None
    mean: float
    steps: Mapping[str, Fraction]
    k: int
    counted: str | None

    @classmethod
    def of(
        cls,
        frame: DataFrame,
        group: Group,
        specification: Specification,
        factors: Mapping[str, Scale],
        magnitude: Mapping[str, float],
        records: int,
    ) -> SamplingWeights | None:
        """Return how the clusters of a clustering use weights and units; None without either.

        Parameters
        ----------
        factors : mapping of numeric quasi-identifier to Scale
        magnitude : mapping of variable to its largest absolute value
        records : int
            Of the frame, about.
        """
        name = specification.weighted_by(group)
        if name is None:
            counted, k = specification.counted, specification.release.k
            return None if counted is None else cls(None, 1.0, {}, k, counted)
        mean = scales(frame, (name,), magnitude)[name].mean
        numeric = [each for each in group.variables if each in specification.numeric]
        steps = _steps(frame, numeric, specification, factors, records)
        return cls(name, mean, steps, specification.release.k, specification.counted)

    def weights(self, records: pa.Table) -> np.ndarray:
        """Return the weights of records, (n,), 1 on average over the file."""
        if self.name is None:
            return np.ones(len(records))
        return numbers(records[self.name]) / self.mean

    def merge(self, block: pa.Table, points: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Merge clusters until no unit has too large a share of one, as far as that helps."""
        return spread(points, labels, self.weights(block), largest_share(self.k), self._owners(block))

    def mean_weights(self, block: pa.Table, labels: np.ndarray) -> np.ndarray:
        """Return the weight of each record in the means of its cluster, (n,)."""
        return trimmed(self.weights(block), labels, largest_share(self.k), self._owners(block))

    def mode_weights(self, block: pa.Table, labels: np.ndarray) -> np.ndarray:
        """Return the weight of each record if its cluster publishes the value of one of its records, (n,)."""
        most = min(largest_share(self.k), LARGEST_VOTE)
        return trimmed(self.weights(block), labels, most, self._owners(block))

    def _owners(self, block: pa.Table) -> np.ndarray | None:
        return None if self.counted is None else category_codes(block[self.counted])


def _steps(
    frame: DataFrame,
    names: list[str],
    specification: Specification,
    factors: Mapping[str, Scale],
    records: int,
) -> dict[str, Fraction]:
    """Return the rounding step of each variable, from records drawn by content: the same for any
    partitioning."""
    if not names:
        return {}
    published = [name for name in frame.columns if name in specification.published]
    place = f.pmod(f.xxhash64(f.lit("steps"), *content_of(published)), f.lit(_PLACES))
    drawn = frame.where(place < math.ceil(_PLACES * min(1.0, SAMPLE / max(records, 1))))
    values = drawn.select(*[column(name).cast("double").alias(f"v{i}") for i, name in enumerate(names)])
    table = values.toArrow()
    return {name: step_of(numbers(table[f"v{i}"]), factors[name].deviation) for i, name in enumerate(names)}
