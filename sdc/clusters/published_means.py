"""The means that a cluster publishes, so that they name no record's value.

They are rounded to a step of the variable's spread (`granularity`), and moved where the p % rule forbids the
total of the cluster (`p_percent`).
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
    """How means are rounded and moved.

    Attributes
    ----------
    deviations : mapping of variable to float
        Its standard deviation in the whole file.
    seed : int
        Of the draws by which means are moved; a secret.
    owners : (n,) int array, optional
        Whose records are one contribution; by default every record is its own.
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
    """Return whether the p % rule holds for a variable: its means are rounded to more than their unit.

    Whole numbers with a small spread are ages, hours and counts, of which everybody knows as much.
    """
    return bool(deviation > 0.0) and (pa.types.is_floating(kind) or deviation * SHARE * units_of(kind) >= 2.0)
