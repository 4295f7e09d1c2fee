"""Hierarchical variables: distances in a tree of categories.

The distance of two categories is the share of levels below their lowest common ancestor. Without a common
ancestor the distance is 1, as for two values of a nominal variable. A missing value has the distance 1 to
every category.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from microguard.sdc.clusters.codes import category_codes
from microguard.sdc.errors import InvalidParameter


@dataclass(frozen=True)
class Tree:
    """Values of a hierarchical variable: the `codes` (n, levels) that `level_codes` returns."""

    codes: np.ndarray

    @property
    def places(self) -> np.ndarray:
        """Return the rank of each record's category in the tie-breaking order, (n,)."""
        return self.codes[:, 0]

    def costs(self, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the distances of each record's category to the categories of its cluster, see
        `tree_costs`.
        """
        return tree_costs(self.codes, labels, weights)

    def distances(self, carriers: np.ndarray) -> np.ndarray:
        """Return the distance from record i to the record at position `carriers[i]`, (n,)."""
        return np.asarray((self.codes != self.codes[carriers]).mean(axis=1))


def level_codes(column: pa.ChunkedArray, paths: Mapping[str, Sequence[str]]) -> np.ndarray:
    """Return the codes of each record's category and of its ancestors, (n, levels) int64, finest level first.

    The distance of two records is the share of levels in which their codes differ. NULL is a separate
    category at each level, the last one.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Categories, compared as text.
    paths : mapping of category to sequence
        Path of each category: the category and its ancestors, finest first. All paths have the same length.

    Raises
    ------
    InvalidParameter
        If a category has no path.
    """
    finest = category_codes(column)
    first = np.unique(finest, return_index=True)[1]
    occurring = column.take(pa.array(first)).cast(pa.string()).to_pylist()
    strange = sum(value is not None and value not in paths for value in occurring)
    if strange:
        raise InvalidParameter(
            f"hierarchical variable: expected categories of its tree, found {strange} records with others. "
            "Add these categories to the hierarchy file, or recode the records"
        )
    levels = [finest]
    for level in range(1, len(next(iter(paths.values())))):
        codes = sorted({paths[value][level] for value in occurring if value is not None})
        place = {code: number for number, code in enumerate(codes)}
        of_category = [len(codes) if value is None else place[paths[value][level]] for value in occurring]
        levels.append(np.array(of_category, np.int64)[finest])
    return np.column_stack(levels)


def tree_costs(codes: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted sum of distances from each record's category to the categories of its cluster,
    (n,).

    Parameters
    ----------
    codes : (n, levels) int array
        Codes as `level_codes` returns them.
    labels : (n,) int array
        Cluster of each record, 0 to m - 1.
    weights : (n,) float array
    """
    total = np.bincount(labels, weights=weights)[labels]
    costs = np.zeros(len(labels))
    for level in codes.T:
        cell = np.unique(labels * (int(level.max()) + 1) + level, return_inverse=True)[1].ravel()
        costs += total - np.bincount(cell, weights=weights)[cell]
    return costs / codes.shape[1]
