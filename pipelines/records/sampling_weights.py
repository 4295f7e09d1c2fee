"""Sampling weights in clusters: the weight of each record in a mean or a mode.

The weight is published unchanged. Therefore no record may have too large a share of a mean or a vote; `sdc`
has the rules. The rules use published weights only, so that merged clusters and trimmed weights disclose no
value.

If k counts units or households, the records of a unit have one common share, weighted or not. Otherwise, a
class of three units could have twelve records of the first unit and one record of each other unit: its mean
would be about that of the first unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from microguard.pipelines.records.coordinates import numbers
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.sections import Group
from microguard.sdc.clusters.codes import category_codes
from microguard.sdc.clusters.weight_shares import LARGEST_VOTE, largest_share, spread, trimmed


@dataclass(frozen=True)
class SamplingWeights:
    """Sampling weights of the records of a clustering.

    Attributes
    ----------
    name : str or None
        Variable of the weight; None if all records have weight 1.
    mean : float
        Mean weight of all records. Weights are divided by it, so that sums of weights have the size of
        numbers of records.
    k : int
    counted : str or None
        Unit that k counts, if not records; the weights of a unit are one share.
    """

    name: str | None
    mean: float
    k: int
    counted: str | None

    @classmethod
    def of(
        cls,
        group: Group,
        specification: Specification,
        mean_weights: Mapping[str, float],
    ) -> SamplingWeights | None:
        """Return the weights and units that the clusters of a clustering use; None if there are neither.

        Parameters
        ----------
        mean_weights : mapping of weight to its mean over all accepted records
        """
        name = specification.weighted_by(group)
        if name is None:
            counted, k = specification.counted, specification.release.k
            return None if counted is None else cls(None, 1.0, k, counted)
        return cls(name, mean_weights[name], specification.release.k, specification.counted)

    def weights(self, records: pa.Table) -> np.ndarray:
        """Return the weights of records, (n,), whose mean over the file is 1."""
        if self.name is None:
            return np.ones(len(records))
        return numbers(records[self.name]) / self.mean

    def merge(self, block: pa.Table, points: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Merge clusters until no unit has too large a share of any, if merging can achieve this."""
        return spread(points, labels, self.weights(block), largest_share(self.k), self.owners(block))

    def mean_weights(self, block: pa.Table, labels: np.ndarray) -> np.ndarray:
        """Return the weight of each record in the means of its cluster, (n,)."""
        return trimmed(self.weights(block), labels, largest_share(self.k), self.owners(block))

    def mode_weights(self, block: pa.Table, labels: np.ndarray) -> np.ndarray:
        """Return the weight of each record if its cluster publishes the value of one of its records, (n,)."""
        most = min(largest_share(self.k), LARGEST_VOTE)
        return trimmed(self.weights(block), labels, most, self.owners(block))

    def owners(self, block: pa.Table) -> np.ndarray | None:
        """Return the owner of each record, (n,); the records of an owner count as one share. None if all
        owners differ.
        """
        return None if self.counted is None else category_codes(block[self.counted])
