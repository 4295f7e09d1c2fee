"""Noise table of the cell key method: probabilities of the noise by count, and the noise drawn by a key.

Every record has a secret random key, and the key of a cell is the sum of the record keys modulo 2^32 (Fraser
and Wooton 2005; Thompson, Broadfoot and Elazar 2013). The same records therefore get the same noise in every
table. The noise has mean 0, a given variance and a maximum. No positive count below the threshold is
published, and 0 stays 0. The noise has maximum entropy under these conditions (Marley and Leaver 2011;
Giessing 2016; Meindl and Enderle 2019). Published margins do not add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from microguard.sdc.cta.cell_keys.entropy import noise_of_largest_entropy
from microguard.sdc.errors import InvalidParameter, ShapeMismatch

#: Tolerances of p-tables: for the sum of probabilities, which must be 1, and for the mean noise of a count,
#: which must be 0. Deviations occur because files contain rounded probabilities and optimisers stop early.
PROBABILITY_ERROR, MEAN_ERROR = 1e-6, 0.01
#: Upper limit of keys. Keys are nonnegative integers below it, and their sums are computed modulo it.
KEY_SPAN = 1 << 32


@dataclass(frozen=True)
class CellKeyParameters:
    """Conditions on the noise.

    Attributes
    ----------
    k : int
        No published count is 1 to k - 1; 0 stays 0.
    largest : int
        Largest absolute noise D, at least k.
    variance : float
        Variance of the noise. Small counts cannot have this variance; they have the nearest variance that
        keeps them unbiased.
    """

    k: int = 3
    largest: int = 5
    variance: float = 2.0

    def __post_init__(self) -> None:
        if self.k < 2 or self.largest < self.k:
            raise InvalidParameter(
                f"cell keys: expected k >= 2 and a largest noise of at least k, found {self.k} and "
                f"{self.largest}"
            )
        if not 0 < self.variance < self.largest**2:
            raise InvalidParameter(
                f"variance of the noise: expected a number between 0 and {self.largest**2}, found "
                f"{self.variance}"
            )

    @classmethod
    def of_threshold(
        cls, k: int, largest: int | None = None, variance: float | None = None
    ) -> CellKeyParameters:
        """Return the default parameters for a threshold k.

        The largest noise is k + 2. The variance is that of the small count whose draw between 0 and k is the
        most uncertain, so that no count can be inferred from its noise.
        """
        return cls(
            k,
            k + 2 if largest is None else largest,
            (k // 2) * (k - k // 2) if variance is None else variance,
        )


@dataclass(frozen=True, eq=False)
class NoiseTable:
    """Probabilities of the noise by original count.

    All counts from the last row on have the noise of the last row.

    Attributes
    ----------
    parameters : CellKeyParameters
    odds : (counts, 2 D + 1) float array, one row per count from 0, one column per value of `noise`
        The last row is the count D + k for maximum-entropy noise, and the largest count of a given p-table.
    """

    parameters: CellKeyParameters
    odds: np.ndarray

    @classmethod
    def of(cls, parameters: CellKeyParameters) -> NoiseTable:
        """Build the table of maximum-entropy noise."""
        noise = np.arange(-parameters.largest, parameters.largest + 1)
        odds = np.zeros((parameters.largest + parameters.k + 1, len(noise)))
        odds[0, noise == 0] = 1.0
        for count in range(1, len(odds)):
            published = count + noise
            possible = (published == 0) | (published >= parameters.k)
            odds[count, possible] = noise_of_largest_entropy(noise[possible], parameters.variance)
        return cls(parameters, odds)

    @classmethod
    def from_transitions(
        cls, counts: np.ndarray, published: np.ndarray, probabilities: np.ndarray
    ) -> NoiseTable:
        """Build the noise table from an office's own p-table (format of the R package ptable: i, j and p in
        each line).

        Parameters
        ----------
        counts, published, probabilities : (lines,) arrays
            True count i, published count j, and the probability of j given i. All counts above the largest i
            have the noise of the largest i.

        Raises
        ------
        InvalidParameter
            If a count has no line, probabilities do not sum to 1, the mean noise is not 0, a count of 0
            changes, or the last count may be published below the smallest positive published count.
        """
        counts, published = np.asarray(counts, np.int64), np.asarray(published, np.int64)
        lines, last = len(counts), int(counts.max(initial=-1))
        if not lines or not len(published) == len(probabilities) == lines:
            raise InvalidParameter(
                "p-table: expected a count, a published count and a probability in each line"
            )
        if counts.min() < 0 or published.min() < 0 or not (np.asarray(probabilities) >= 0).all():
            raise InvalidParameter(
                "p-table: expected counts and probabilities of at least 0, found a negative one"
            )
        largest = int(np.abs(published - counts).max())
        odds = np.zeros((last + 1, 2 * largest + 1))
        np.add.at(odds, (counts, published - counts + largest), probabilities)
        wrong = np.abs(odds.sum(axis=1) - 1) > PROBABILITY_ERROR
        if wrong.any():
            raise InvalidParameter(
                f"count {int(np.argmax(wrong))} of a p-table: expected probabilities with the sum 1, found "
                f"{odds.sum(axis=1)[np.argmax(wrong)]:.6g}"
            )
        noise = np.arange(-largest, largest + 1)
        biased = np.abs(odds @ noise) > MEAN_ERROR
        if biased.any():
            raise InvalidParameter(
                f"count {int(np.argmax(biased))} of a p-table: expected noise with mean 0, found "
                f"{(odds @ noise)[np.argmax(biased)]:.4g}"
            )
        positive = published[(published > 0) & (np.asarray(probabilities) > 0)]
        if odds[0, largest] < 1 - PROBABILITY_ERROR or not len(positive):
            raise InvalidParameter(
                "p-table: expected that 0 is published as 0, and that other counts are published above 0"
            )
        least = int(positive.min())
        if (odds[-1, last + noise < least] > 0).any():
            raise InvalidParameter(
                f"last count of a p-table, {last}: expected published counts of at least {least}, because "
                "its noise is used for all larger counts; found smaller ones. Add lines for larger counts"
            )
        variance = float(odds[-1] @ noise**2 - (odds[-1] @ noise) ** 2)
        return cls(CellKeyParameters(least, largest, variance), odds)

    @property
    def noise(self) -> np.ndarray:
        """Return the possible values of the noise, -D to D, (2 D + 1,) int64."""
        return np.arange(-self.parameters.largest, self.parameters.largest + 1)

    def rows(self, counts: np.ndarray) -> np.ndarray:
        """Return the probabilities of the noise for these counts, (cells, 2 D + 1)."""
        return np.asarray(self.odds[np.minimum(np.asarray(counts, np.int64), len(self.odds) - 1)])

    @cached_property
    def _steps(self) -> np.ndarray:
        """Return the upper limit of the integer keys that draw each value of the noise, (D + k + 1, 2
        D + 1).
        """
        steps = np.rint(np.cumsum(self.odds, axis=1) * KEY_SPAN).astype(np.uint64)
        steps[:, -1] = KEY_SPAN
        return steps

    def perturb(self, counts: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Return the published counts of cells with these counts and keys, (cells,) int64."""
        if counts.shape != keys.shape:
            raise ShapeMismatch(f"{counts.shape} counts for {keys.shape} keys")
        whole = np.asarray(counts, np.int64)
        steps = self._steps[np.minimum(whole, len(self.odds) - 1)]
        drawn = keys.astype(np.uint64) % np.uint64(KEY_SPAN)
        place = (drawn[:, None] >= steps).sum(axis=1)
        return np.asarray(whole + self.noise[place], np.int64)
