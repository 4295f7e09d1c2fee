"""Published means of clusters, protected so that they disclose no record's value.

Means are rounded to a step that depends on the variable's standard deviation (`granularity`). If the p % rule
forbids the total of a cluster, its mean is moved (`p_percent`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from microguard.sdc.clusters.exact_values import ExactValues, units_of
from microguard.sdc.clusters.granularity import SHARE, steps_of
from microguard.sdc.clusters.p_percent import contributions, displacements


@dataclass(frozen=True)
class MeanProtection:
    """Parameters of the rounding and displacement of means.

    Attributes
    ----------
    deviations : mapping of variable to float
        Standard deviation of the variable in the whole file.
    seed : int
        Seed of the displacements; it must be secret.
    owners : (n,) int array, optional
        Owner of each record. The records of one owner are one contribution; by default each record is one.
    """

    deviations: Mapping[str, float]
    seed: int
    owners: np.ndarray | None = None

    def published(
        self, values: ExactValues, labels: np.ndarray, weights: np.ndarray, name: str, kind: pa.DataType
    ) -> ExactValues:
        """Return the published mean of each cluster 0 to m - 1, in the units of the column."""
        means, units = values.means(labels, weights), float(units_of(kind))
        numbers = values.values.astype(np.float64) / units
        deviation = self.deviations[name]
        steps = steps_of(numbers, labels, deviation)
        if is_magnitude(deviation, kind):
            unit = 0.0 if pa.types.is_floating(kind) else 1.0 / units
            of = contributions(numbers, labels, weights, self.owners)
            lost = np.maximum(steps.sizes, unit)
            moves = displacements(of, means.values.astype(np.float64) / units, lost, self._seed(name))
            means = means.moved(moves * units)
        return means.rounded(steps, kind)

    def _seed(self, name: str) -> int:
        drawn = hashlib.blake2b(f"{self.seed}/{name}".encode(), digest_size=8)
        return int.from_bytes(drawn.digest(), "big")


def is_magnitude(deviation: float, kind: pa.DataType) -> bool:
    """Return whether the p % rule applies to a variable: it does if the step of its means exceeds its unit.

    Whole numbers with a small standard deviation are ages, hours or counts, not secret amounts.
    """
    return bool(deviation > 0.0) and (pa.types.is_floating(kind) or deviation * SHARE * units_of(kind) >= 2.0)
