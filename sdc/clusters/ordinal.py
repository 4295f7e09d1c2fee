"""Ordinal variables: distances by rank, as coordinates, and the category nearest to those of its cluster.

Two categories are as far apart as there are steps between them, the two ends of the order as far as two
values of a nominal variable; a missing value is that far from every other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from microguard.sdc.errors import InvalidParameter

#: Rank of a missing value.
MISSING = -1


@dataclass(frozen=True)
class Ranks:
    """An ordinal variable of some records: `ranks` (n,) from 0 to `categories` - 1, or `MISSING`."""

    ranks: np.ndarray
    categories: int

    @property
    def places(self) -> np.ndarray:
        """Which of two categories comes first where nothing else decides, (n,): the lower, missing last."""
        return np.where(self.ranks == MISSING, self.categories, self.ranks)

    def costs(self, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """See `rank_costs`."""
        return rank_costs(self.ranks, self.categories, labels, weights)

    def distances(self, carriers: np.ndarray) -> np.ndarray:
        """From each record to the record at its position in `carriers`, (n,)."""
        return rank_distances(self.ranks, self.ranks[carriers], self.categories)


def ranks_of(column: pa.ChunkedArray, order: Sequence[str]) -> np.ndarray:
    """Places of the categories of an ordinal variable in its order, (n,) int64; `MISSING` for NULL.

    Raises
    ------
    InvalidParameter
        A category that is not in the order.
    """
    ranks = pc.index_in(column.cast(pa.string()), value_set=pa.array(order, pa.string()))
    strange = ranks.null_count - column.null_count
    if strange:
        raise InvalidParameter(f"{strange} values of an ordinal variable are not in its order")
    return np.asarray(pa.chunked_array(ranks.fill_null(MISSING)).to_numpy()).astype(np.int64)


def ordinal_coordinates(ranks: np.ndarray, categories: int) -> np.ndarray:
    """Coordinates whose squared distances are the distances by rank.

    Each step between neighbouring ranks that occur is a coordinate, "is above it". All such points lie on a
    sphere around the middle of their box, so that missing values fit above that middle.

    Parameters
    ----------
    ranks : (n,) int array
        From 0 to categories - 1, or `MISSING`.
    categories : int
        Length of the order, at least 2.

    Returns
    -------
    (n, steps) float array
        Squared distances are |i - j| / (categories - 1), and 1 from a missing value to any other.
    """
    _check(ranks, categories)
    missing = ranks == MISSING
    occurring = np.unique(ranks[~missing])
    lengths = np.diff(occurring) / (categories - 1)
    coordinates = np.where(ranks[:, None] >= occurring[1:], np.sqrt(lengths), 0.0)
    if not missing.any():
        return coordinates
    coordinates[missing] = np.sqrt(lengths) / 2
    height = np.sqrt(1.0 - lengths.sum() / 4)  # squared radius of the sphere: a quarter of the box's diagonal
    return np.column_stack([coordinates, np.where(missing, height, 0.0)])


def rank_costs(ranks: np.ndarray, categories: int, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted sum of the distances from each record's category to those of its cluster, (n,).

    It is least at the weighted median of the ranks.

    Parameters
    ----------
    ranks, categories : as of `ordinal_coordinates`
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
    """Distance between the categories at each place of two arrays of ranks, (n,)."""
    mismatch = (ranks != others).astype(np.float64)
    known = (ranks != MISSING) & (others != MISSING)
    return np.where(known, np.abs(ranks - others) / (categories - 1), mismatch)


def _check(ranks: np.ndarray, categories: int) -> None:
    if categories < 2:
        raise InvalidParameter(f"an order has at least 2 categories, found {categories}")
    if ranks.min(initial=0) < MISSING or ranks.max(initial=0) >= categories:
        raise InvalidParameter(f"ranks lie between 0 and {categories - 1}, or are {MISSING} where missing")
