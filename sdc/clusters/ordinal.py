"""Ordinal variables: distances by rank, and coordinates that have these distances.

The distance of two categories is the difference of their ranks, scaled to 1 between the first and the last
category, like two values of a nominal variable. A missing value has the distance 1 to every category.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from microguard.sdc.errors import InvalidParameter

#: Code of a missing value.
MISSING = -1


@dataclass(frozen=True)
class Ranks:
    """Values of an ordinal variable: `ranks` (n,) from 0 to `categories` - 1, or `MISSING`."""

    ranks: np.ndarray
    categories: int

    @property
    def places(self) -> np.ndarray:
        """Return the rank of each record's category in the tie-breaking order, (n,); missing values come
        last.
        """
        return np.where(self.ranks == MISSING, self.categories, self.ranks)

    def costs(self, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the distances of each record's category to the categories of its cluster, see
        `rank_costs`.
        """
        return rank_costs(self.ranks, self.categories, labels, weights)

    def distances(self, carriers: np.ndarray) -> np.ndarray:
        """Return the distance from record i to the record at position `carriers[i]`, (n,)."""
        return rank_distances(self.ranks, self.ranks[carriers], self.categories)


def ranks_of(column: pa.ChunkedArray, order: Sequence[str]) -> np.ndarray:
    """Return the rank of each record's category in `order`, (n,) int64; `MISSING` for NULL.

    Raises
    ------
    InvalidParameter
        If a category is not in the order.
    """
    ranks = pc.index_in(column.cast(pa.string()), value_set=pa.array(order, pa.string()))
    strange = ranks.null_count - column.null_count
    if strange:
        raise InvalidParameter(
            f"ordinal variable: expected categories of its order, found {strange} records with others. Add "
            "these categories to the order, or recode the records"
        )
    return np.asarray(pa.chunked_array(ranks.fill_null(MISSING)).to_numpy()).astype(np.int64)


def ordinal_coordinates(ranks: np.ndarray, categories: int) -> np.ndarray:
    """Return coordinates whose squared distances are the distances by rank.

    Each step between neighbouring ranks that occur is one coordinate: positive for the ranks above the step,
    0 for the others. All these points have the same distance to the middle of their bounding box. One more
    coordinate places missing values above that middle, at distance 1 from every point.

    Parameters
    ----------
    ranks : (n,) int array
        From 0 to categories - 1, or `MISSING`.
    categories : int
        Number of categories in the order, at least 2.

    Returns
    -------
    (n, steps) float array
        Squared distances are |i - j| / (categories - 1), and 1 between a missing value and any other value.
    """
    _check(ranks, categories)
    missing = ranks == MISSING
    occurring = np.unique(ranks[~missing])
    lengths = np.diff(occurring) / (categories - 1)
    coordinates = np.where(ranks[:, None] >= occurring[1:], np.sqrt(lengths), 0.0)
    if not missing.any():
        return coordinates
    coordinates[missing] = np.sqrt(lengths) / 2
    # the squared distance of every point to the midpoint is sum / 4
    height = np.sqrt(1.0 - lengths.sum() / 4)
    return np.column_stack([coordinates, np.where(missing, height, 0.0)])


def rank_costs(ranks: np.ndarray, categories: int, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted sum of distances from each record's category to the categories of its cluster,
    (n,).

    The weighted median of the ranks minimises this sum.

    Parameters
    ----------
    ranks, categories
        See `ordinal_coordinates`.
    labels : (n,) int array
        Cluster of each record, 0 to m - 1.
    weights : (n,) float array
    """
    _check(ranks, categories)
    clusters = int(labels.max(initial=-1)) + 1
    present = ranks != MISSING
    mass = np.where(present, weights, 0.0)
    order = np.lexsort((ranks, labels))
    below, moment = np.cumsum(mass[order]), np.cumsum((mass * ranks)[order])
    size = np.bincount(labels, weights=mass, minlength=clusters)
    total = np.bincount(labels, weights=mass * ranks, minlength=clusters)
    lost = np.bincount(labels, weights=weights, minlength=clusters) - size
    before = np.concatenate([[0.0], np.cumsum(size)])[:-1], np.concatenate([[0.0], np.cumsum(total)])[:-1]
    under, sum_under = np.empty(len(ranks)), np.empty(len(ranks))
    under[order] = below - before[0][labels[order]]
    sum_under[order] = moment - before[1][labels[order]]
    steps = ranks * under - sum_under + (total[labels] - sum_under) - ranks * (size[labels] - under)
    return np.where(present, steps / (categories - 1) + lost[labels], size[labels])


def rank_distances(ranks: np.ndarray, others: np.ndarray, categories: int) -> np.ndarray:
    """Return the elementwise distances between two arrays of ranks, (n,)."""
    mismatch = (ranks != others).astype(np.float64)
    known = (ranks != MISSING) & (others != MISSING)
    return np.where(known, np.abs(ranks - others) / (categories - 1), mismatch)


def _check(ranks: np.ndarray, categories: int) -> None:
    if categories < 2:
        raise InvalidParameter(
            f"ordinal variable: expected at least 2 categories in its order, found {categories}"
        )
    if ranks.min(initial=0) < MISSING or ranks.max(initial=0) >= categories:
        raise InvalidParameter(
            f"ordinal variable: expected ranks between 0 and {categories - 1}, or {MISSING} for a missing "
            "value; found other ranks"
        )
