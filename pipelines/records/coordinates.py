"""Records as coordinates: numbers in units of their scale, nominal values as scaled indicators.

The squared distance of two points is the cost of clustering their records together. The weight of a variable
multiplies its part of the squared distance, so coordinates are multiplied by the square root of the weight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from microguard.pipelines.intake.fixed_point import Scale
from microguard.sdc.clusters.cost_matrix import CostMatrix
from microguard.sdc.clusters.ordinal import MISSING, ordinal_coordinates, ranks_of

#: Power of two to whose multiples the coordinates for trees are rounded.
TREE_GRID = 2.0**-32


@dataclass(frozen=True)
class Coordinates:
    """Mapping from the variables of a clustering to coordinates of points.

    Attributes
    ----------
    scales : mapping of numeric variable to Scale
    categories : mapping of nominal variable to pyarrow.Array
        Categories that get an indicator (in trees only; inside a block every category has one).
    weights : mapping of variable to float
        Factor of the squared distance in a variable; 1 by default.
    orders : mapping of ordinal variable to its categories, lowest first
    trees : mapping of hierarchical variable to its paths
        Each category with its ancestors, finest first.
    costs : mapping of variable to CostMatrix
        Cost matrices of nominal variables whose mismatches have different costs.
    """

    scales: Mapping[str, Scale]
    categories: Mapping[str, pa.Array]
    weights: Mapping[str, float] = field(default_factory=dict)
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    trees: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    costs: Mapping[str, CostMatrix] = field(default_factory=dict)

    def weight(self, name: str) -> float:
        """Return the factor by which the squared distance in a variable is multiplied."""
        return self.weights.get(name, 1.0)

    def numeric(self, table: pa.Table) -> np.ndarray:
        """Return the standardised numeric variables, (n, p), without weights, for losses; NaN for missing
        values.
        """
        points = np.empty((len(table), len(self.scales)))
        for j, (name, scale) in enumerate(self.scales.items()):
            points[:, j] = (numbers(table[name]) - scale.mean) / scale.divisor
        return points

    def weighted(self, table: pa.Table) -> np.ndarray:
        """Return the standardised numeric variables times the square roots of their weights, (n, p)."""
        return self.numeric(table) * np.sqrt([self.weight(name) for name in self.scales])

    def levels(self, name: str) -> int:
        """Return the number of levels of a variable's tree; 1 without a tree."""
        return len(next(iter(self.trees[name].values()))) if name in self.trees else 1

    def ordinal(self, name: str, values: pa.ChunkedArray) -> np.ndarray:
        """Return the coordinates of an ordinal variable, (n, steps); its weight is the distance between both
        ends.
        """
        order = self.orders[name]
        return ordinal_coordinates(ranks_of(values, order), len(order)) * math.sqrt(self.weight(name))

    def priced(self, name: str, values: pa.ChunkedArray, whole: bool = False) -> np.ndarray:
        """Return the coordinates of a variable with a cost matrix; its weight is the largest cost.

        With `whole`, all categories have coordinates, so that points of several tables can be compared.
        """
        matrix = self.costs[name]
        among = np.arange(len(matrix.mismatches)) if whole else None
        return matrix.coordinates(matrix.rows(values), among) * math.sqrt(self.weight(name))

    def points(self, table: pa.Table) -> np.ndarray:
        """Return the coordinates for trees: missing numbers are replaced by the mean, and a category mismatch
        costs its weight.

        Numbers are rounded to multiples of `TREE_GRID`, so that their last bits do not decide between equal
        projections. Ordinal variables have a single coordinate, along the line between the ends of their
        order; hierarchical variables have the coordinates of their finest level. Therefore two points are
        never farther apart than their records. Variables with a cost matrix have the same coordinates as in a
        block.
        """
        numeric = np.rint(np.nan_to_num(self.weighted(table), nan=0.0) / TREE_GRID) * TREE_GRID
        indicators = []
        for name, values in self.categories.items():
            codes = pc.index_in(table[name], value_set=values).to_numpy(zero_copy_only=False)
            indicator = (codes[:, None] == np.arange(len(values))) / math.sqrt(2.0)
            indicators.append(indicator * math.sqrt(self.weight(name) / self.levels(name)))
        for name, order in self.orders.items():
            ranks = ranks_of(table[name], order)
            along = np.where(ranks == MISSING, 0.5, ranks / (len(order) - 1))
            indicators.append(along[:, None] * math.sqrt(self.weight(name)))
        indicators += [self.priced(name, table[name], whole=True) for name in self.costs]
        return np.column_stack([numeric, *indicators]) if indicators else numeric


def numbers(values: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """Return a numeric column as floats; NaN for missing values."""
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    floats = values.cast(pa.float64(), safe=False)  # integers beyond 2^53 lose their last digits
    return np.asarray(
        floats.to_numpy() if isinstance(floats, pa.ChunkedArray) else floats.to_numpy(zero_copy_only=False)
    )
