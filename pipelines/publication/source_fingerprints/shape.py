"""Recognition of the same records after all labels were recoded and numbers rescaled, under the same column
names.

A recoded label has another hash but the same counts. The cross table of two columns with few values is
computed from the counts of single values and of ordered pairs of values; the hash of a pair is a sum. Rows
and columns of the table are sorted by their counts, which recoding does not change. Tables of different
records of one population differ by chance, given their margins (chi-square test of homogeneity). Tables of
the same records, or of most of them, differ by less.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from microguard.pipelines.publication.source_fingerprints.overlap import CellCounts

#: Maximum number of columns whose ordered pairs are counted: the columns whose names have the smallest
#: hashes.
COLUMNS = 8
#: Number of a column's categories that are compared: the most frequent ones; all others form one category.
CATEGORIES = 40
#: Minimum number, and minimum share of the common columns, in which two sources must be similar.
FEWEST, SHARE = 3, 0.5
#: Maximum dispersion, relative to that expected by chance, with which most records count as the same.
DISPERSION = 0.5
#: Minimum degrees of freedom: of one table, and of all tables together.
FREE, FREE_TOGETHER = 8, 100
#: Minimum size of the smaller source as a share of the larger one; with fewer records, the order of the
#: counts differs.
NEARLY = 0.9

Subset = tuple[str, ...]


@dataclass(frozen=True)
class Alike:
    """Similarity of the table shapes of two sources.

    Attributes
    ----------
    free : int
        Degrees of freedom of all tables that are less dispersed than expected by chance.
    columns : int
        Columns of these tables.
    same : bool
        Whether most records are the same.
    """

    free: int
    columns: int
    same: bool


def pairs_of(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of columns whose cross tables are counted."""
    chosen = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())[:COLUMNS]
    return list(combinations(sorted(chosen), 2))


def ordered_hash(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return a hash of each pair of values, (n,) uint64, that depends on the order of the two columns."""
    return rows + ((columns << np.uint64(1)) | (columns >> np.uint64(63)))


def shapes(
    cells: Mapping[Subset, CellCounts], pairs: Mapping[tuple[str, str], CellCounts]
) -> dict[Subset, np.ndarray]:
    """Return the tables of pairs of columns with few values, sorted in an order that does not depend on
    labels.

    Parameters
    ----------
    cells : mapping of columns to counts
        Counts of single columns, by the hashes of their values.
    pairs : mapping of two columns to counts
        Counts of pairs of columns, by `ordered_hash`.
    """
    tables: dict[Subset, np.ndarray] = {}
    for pair, counts in pairs.items():
        rows, columns = (cells.get((name,)) for name in pair)
        if rows is None or columns is None or not (rows.whole and columns.whole and counts.whole):
            continue
        table = _table(rows, columns, counts)
        if table is not None:
            tables[pair] = _ordered(table)
    return tables


def alike(
    left: Mapping[Subset, np.ndarray], right: Mapping[Subset, np.ndarray], sizes: tuple[int, int]
) -> Alike:
    """Compare the `shapes` of two sources, given their numbers of records."""
    if min(sizes) < NEARLY * max(sizes):
        return Alike(0, 0, False)
    common = [pair for pair in left if pair in right]
    names = {name for pair in common for name in pair}
    free, covered = 0, set[str]()
    for pair in common:
        d, f = _dispersion(left[pair], right[pair])
        if f >= FREE and d <= DISPERSION * f:
            free += f
            covered.update(pair)
    same = free >= FREE_TOGETHER and len(covered) >= max(FEWEST, SHARE * len(names))
    return Alike(free, len(covered), same)


def _table(rows: CellCounts, columns: CellCounts, pair: CellCounts) -> np.ndarray | None:
    """Return the joint counts of two columns; None if some records have no pair of values."""
    if not len(pair.cells) or len(rows.cells) * len(columns.cells) > 2**20:
        return None
    table = np.zeros((len(rows.cells), len(columns.cells)))
    tried: list[np.ndarray] = []
    for low, high in product((0, 1), repeat=2):  # the hash bits that single values do not use
        one = 2 * rows.cells.astype(np.uint64) + np.uint64(low)
        other = 2 * columns.cells.astype(np.uint64) + np.uint64(high)
        wanted = (ordered_hash(one[:, None], other[None, :]) >> np.uint64(1)).astype(np.int64)
        place = np.minimum(np.searchsorted(pair.cells, wanted), len(pair.cells) - 1)
        fresh = pair.cells[place] == wanted
        for earlier in tried:
            fresh &= earlier != wanted
        table += np.where(fresh, pair.records[place], 0)
        tried.append(wanted)
    return table if table.sum() == pair.records.sum() else None


def _ordered(table: np.ndarray) -> np.ndarray:
    """Return the table with rows and columns sorted by their totals; ties are resolved by their sorted
    counts.
    """
    for _ in range(2):
        profile = np.sort(table, axis=1)
        table = table[np.lexsort((*profile.T, table.sum(axis=1)))[::-1]].T
    for _ in range(2):  # the columns beyond the limit are merged into one
        if len(table) > CATEGORIES:
            table = np.vstack([table[: CATEGORIES - 1], table[CATEGORIES - 1 :].sum(axis=0)])
        table = table.T
    return table


def _dispersion(left: np.ndarray, right: np.ndarray) -> tuple[float, int]:
    """Return chi-square of homogeneity of two tables, and its degrees of freedom given the margins."""
    shape = tuple(max(pair) for pair in zip(left.shape, right.shape, strict=True))
    a, b = np.zeros(shape), np.zeros(shape)
    a[: left.shape[0], : left.shape[1]] = left
    b[: right.shape[0], : right.shape[1]] = right
    total = a + b
    share = a.sum() / total.sum()
    found = total > 0
    square = float(((a - share * total)[found] ** 2 / (total[found] * share * (1 - share))).sum())
    margins = int(found.any(axis=1).sum() + found.any(axis=0).sum()) - 1
    return square, int(found.sum()) - margins
