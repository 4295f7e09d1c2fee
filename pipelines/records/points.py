"""Records of a block as points, for clustering and for merges of clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from microguard.pipelines.records.coordinates import Coordinates
from microguard.sdc.clusters.codes import category_codes
from microguard.sdc.clusters.hierarchical import level_codes

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Points:
    """Records of a block as points; the squared distance of two points is the cost of clustering them
    together.

    Attributes
    ----------
    values : (n, p) float array
        Coordinates, which include their weights, then codes, which are only compared for equality.
    mismatches : (q,) float array
        Cost of a mismatch in each of the last q columns, the codes; a hierarchical variable has one column
        for each level of its tree.
    record_weights : (n,) float array or None
        Factor of the squared distances of each record; None if all records count equally.
    numeric_names : tuple of str
        Numeric variables, whose coordinates come first.
    """

    values: np.ndarray
    mismatches: np.ndarray
    record_weights: np.ndarray | None = None
    numeric_names: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        block: pa.Table,
        coordinates: Coordinates,
        nominal: tuple[str, ...],
        record_weights: np.ndarray | None = None,
    ) -> Points:
        """Build the points of a block, without numeric variables that are missing in all its records."""
        numeric = coordinates.weighted(block)
        present = ~np.isnan(numeric).all(axis=0) if len(numeric) else np.ones(numeric.shape[1], dtype=bool)
        names = tuple(name for name, there in zip(coordinates.scales, present, strict=True) if there)
        ordinal = [coordinates.ordinal(name, block[name]) for name in nominal if name in coordinates.orders]
        priced = [coordinates.priced(name, block[name]) for name in nominal if name in coordinates.costs]
        plain = {*coordinates.orders, *coordinates.costs}
        unordered = [name for name in nominal if name not in plain]
        codes = [
            level_codes(block[name], coordinates.trees[name])
            if name in coordinates.trees
            else category_codes(block[name])
            for name in unordered
        ]
        values = np.column_stack([numeric[:, present], *ordinal, *priced, *codes])
        levels = [coordinates.levels(name) for name in unordered]
        costs = [coordinates.weight(name) / count for name, count in zip(unordered, levels, strict=True)]
        mismatches = np.repeat(np.array(costs, dtype=np.float64), np.array(levels, dtype=np.int64))
        return cls(values, mismatches, record_weights, names)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def frame(self) -> pd.DataFrame:
        """Return the values as a frame, with names for the numeric variables and numbers for the other
        columns.
        """
        import pandas as pd  # only few algorithms have parameters that name a variable

        others = map(str, range(len(self.numeric_names), self.values.shape[1]))
        return pd.DataFrame(self.values, columns=[*self.numeric_names, *others])

    @property
    def alike(self) -> bool:
        """Return whether all records are equal, so that a single cluster has no loss."""
        return not self.values.shape[1] or bool((self.values == self.values[0]).all())

    @property
    def nominal(self) -> np.ndarray:
        """Return the mask of the columns that contain codes, (p,) bool."""
        return np.arange(self.values.shape[1]) >= self.values.shape[1] - len(self.mismatches)

    @property
    def weights(self) -> np.ndarray:
        """Return the factor of the squared distance of each column, (p,); coordinates already include their
        factor.
        """
        return np.concatenate([np.ones(self.values.shape[1] - len(self.mismatches)), self.mismatches])

    @property
    def width(self) -> int:
        """Return the number of columns that `expand` returns."""
        codes = self.values[:, self.nominal]
        indicators = int((codes.max(axis=0) + 1).sum()) if codes.size else 0
        return int(np.count_nonzero(~self.nominal)) + indicators

    def expand(self) -> np.ndarray:
        """Return coordinates with one indicator per category; a mismatch has its cost as squared distance."""
        indicators = [
            (codes[:, None] == np.arange(codes.max() + 1)) / np.sqrt(2.0) * np.sqrt(cost)
            for codes, cost in zip(self.values[:, self.nominal].T, self.mismatches, strict=True)
        ]
        return np.column_stack([self.values[:, ~self.nominal], *indicators])
