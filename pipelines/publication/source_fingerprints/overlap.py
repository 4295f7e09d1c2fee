"""Test whether two files have records in common, by counts of combinations of columns, without a unit key.

In two independent files, each record of a cell (a combination of values) is in one or the other file by
chance: given the cell's total, its count in one file is binomial. Files that differ by more than chance are
irrelevant here. Files that differ by *less* share records: the score test against a shared component of two
Poisson counts is the lower tail of the chi-square test of homogeneity (the reverse of overdispersion; Dean
1992). Cells are sampled by their hash (bottom-k, Broder 1997), independently of counts, so that both files
have the same sample and the test is valid on the sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

#: Upper limit of cell hashes (exclusive).
HASHES = 2**63
#: Number of standard errors below the chance level that proves common records: one false alarm in a billion
#: pairs of samples.
SIGNIFICANCE = 6.0
#: The same limit for few, large cells, as the logarithm of a probability.
LOG_CHANCE = math.log(1e-7)
#: Maximum dispersion, relative to that expected by chance, with which records count as common.
DISPERSION = 0.75
#: Minimum agreement beyond chance, as a share of the largest possible one (kappa; Cohen 1960).
AGREEMENT = 0.3
#: Minimum kappa of a column given another column; running numbers that occur in both files agree in no other
#: column.
BEYOND_NUMBERS = 0.5


@dataclass(frozen=True)
class CellCounts:
    """Number of records in each cell of some columns, for the cells with the smallest hashes.

    Attributes
    ----------
    cells : (m,) int64 array
        Distinct hashes from 0 to 2^63, sorted.
    records : (m,) int64 array
    whole : bool
        Whether these are all cells.
    """

    cells: np.ndarray
    records: np.ndarray
    whole: bool

    @property
    def end(self) -> int:
        """Return the hash below which all cells are included."""
        return HASHES if self.whole or not len(self.cells) else int(self.cells[-1])


@dataclass(frozen=True)
class _Paired:
    """Counts of the same cells in two files; `part` is the compared share of the range of hashes."""

    left: np.ndarray
    right: np.ndarray
    part: float

    @classmethod
    def of(cls, left: CellCounts, right: CellCounts) -> _Paired:
        end = min(left.end, right.end)
        m, n = (int(np.searchsorted(each.cells, end, side="right")) for each in (left, right))
        place = np.searchsorted(left.cells[:m], right.cells[:n])
        both = np.zeros(n, bool)
        inside = place < m
        both[inside] = left.cells[place[inside]] == right.cells[:n][inside]
        alone = right.records[:n][~both]
        counts = np.concatenate([left.records[:m], np.zeros(len(alone))])
        others = np.concatenate([np.zeros(m), alone])
        others[place[both]] = right.records[:n][both]
        return cls(counts, others, end / HASHES)

    @property
    def met(self) -> float:
        """Return the estimated number of cells that occur in both files."""
        return float(((self.left > 0) & (self.right > 0)).sum()) / self.part if len(self.left) else 0.0

    def agreement(self, sizes: tuple[int, int]) -> float:
        """Return the estimated probability that two random records, one of each file, are in the same
        cell.
        """
        return float(self.left @ self.right) / self.part / (sizes[0] * sizes[1])


def share_records(left: CellCounts, right: CellCounts, sizes: tuple[int, int]) -> bool:
    """Return whether the counts of two files differ by less than they would without common records.

    Parameters
    ----------
    left, right : CellCounts
        Counts for the same columns of both files.
    sizes : (int, int)
        Numbers of records of the files.
    """
    paired = _Paired.of(left, right)
    total = paired.left + paired.right
    if len(total) < 2 or not np.any(paired.left * paired.right):
        return False
    share = sizes[0] / sum(sizes)
    spread = share * (1.0 - share)
    distance = np.abs(paired.left - share * total)
    squares = distance**2 / (total * spread)
    # a squared, standardised binomial variable has mean 1 and this variance
    error = math.sqrt(float((2.0 + (1.0 - 6.0 * spread) / (total * spread)).clip(0.0).sum()))
    close = float(squares.mean()) <= DISPERSION
    if close and len(total) - float(squares.sum()) >= SIGNIFICANCE * max(error, 1.0):
        return True
    return _close_in_few(distance, total, spread) or _met_by_twos(paired, total, spread)


def _close_in_few(distance: np.ndarray, total: np.ndarray, spread: float) -> bool:
    """Test few, large cells by Chernoff's bound on the lower tail of chi-square."""
    free = len(total) - 1
    left = float(((distance + 0.5) ** 2 / (total * spread)).sum()) / free  # continuity correction
    return left < DISPERSION and free / 2 * (math.log(left) + 1.0 - left) <= LOG_CHANCE


def _met_by_twos(paired: _Paired, total: np.ndarray, spread: float) -> bool:
    """Test cells of two records each, which also recognises a file that is a part of a larger one."""
    twos = total == 2
    cells, chance = int(twos.sum()), 2.0 * spread
    if cells == 0:
        return False
    beyond = float((paired.left[twos] == 1).mean()) - chance
    error = math.sqrt(chance * (1.0 - chance) / cells)
    # the normal approximation requires at least SIGNIFICANCE cells
    return beyond >= AGREEMENT * (1.0 - chance) and cells * beyond >= SIGNIFICANCE * max(error * cells, 1.0)


def is_numbering(
    pair: tuple[CellCounts, CellCounts],
    column: tuple[CellCounts, CellCounts],
    other: tuple[CellCounts, CellCounts],
    sizes: tuple[int, int],
) -> bool:
    """Return whether two files agree in only one of two columns, as they do for running numbers.

    Parameters
    ----------
    pair, column, other : (CellCounts, CellCounts)
        Counts in both files of both columns together, of the possible numbering, and of the other column.
    sizes : (int, int)
    """
    together, alone = _Paired.of(*pair).met, _Paired.of(*column).met
    chance = _Paired.of(*other).agreement(sizes)
    return together < alone * (chance + BEYOND_NUMBERS * (1.0 - min(chance, 1.0)))
