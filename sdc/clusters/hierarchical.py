"""Hierarchical variables: distances by tree, level by level, and the category nearest to its cluster.

Two categories are as far apart as there are levels below their nearest common ancestor; those without one as
far as two values of a nominal variable, and so is a missing value from every other.
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
    """A hierarchical variable of some records: `codes` (n, levels) as of `level_codes`."""

    codes: np.ndarray

    @property
    def places(self) -> np.ndarray:
        """Which of two categories comes first where nothing else decides, (n,)."""
        return self.codes[:, 0]

    def costs(self, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """See `tree_costs`."""
        return tree_costs(self.codes, labels, weights)

    def distances(self, carriers: np.ndarray) -> np.ndarray:
        """From each record to the record at its position in `carriers`, (n,)."""
        return np.asarray((self.codes != self.codes[carriers]).mean(axis=1))


def level_codes(column: pa.ChunkedArray, paths: Mapping[str, Sequence[str]]) -> np.ndarray:
    """Codes of each record's category and of its ancestors, (n, levels) int64, the category's own first.

    Two records are apart by the share of the levels in which their codes differ. NULL is one more code of
    each level, the last.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Categories, which are compared as text.
    paths : mapping of category to sequence
        The category and its ancestors, finest first, equally many for each.

    Raises
    ------
    InvalidParameter
        A category that has no path.
    """
    finest = category_codes(column)
    first = np.unique(finest, return_index=True)[1]
    occurring = column.take(pa.array(first)).cast(pa.string()).to_pylist()
    strange = sum(value is not None and value not in paths for value in occurring)
    if strange:
        raise InvalidParameter(f"{strange} categories of a hierarchical variable are not in its tree")
    levels = [finest]
    for level in range(1, len(next(iter(paths.values())))):
        codes = sorted({paths[value][level] for value in occurring if value is not None})
        place = {code: number for number, code in enumerate(codes)}
        of_category = [len(codes) if value is None else place[paths[value][level]] for value in occurring]
        levels.append(np.array(of_category, np.int64)[finest])
    return np.column_stack(levels)


def tree_costs(codes: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted sum of the distances from each record's category to those of its cluster, (n,).

    Parameters
    ----------
    codes : (n, levels) int array
        As of `level_codes`.
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
