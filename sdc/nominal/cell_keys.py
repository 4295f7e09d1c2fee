"""Cell keys: frequency tables perturbed by keys of the records behind each cell (Fraser and Wooton 2005).

Every record has a secret random key; the key of a cell is the sum of those of its records, so that the same
records get the same noise in whatever table they stand. The noise has mean 0, a stated variance and a
largest value, and no published count lies between 0 and k. The probabilities are those of largest entropy
under these conditions (Marley and Leaver 2011; Giessing 2016; Eurostat's method of choice for
the census of 2021).
The records are not protected and margins do not add up: it is for tables alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from sdc.errors import InvalidParameter, ShapeMismatch
from sdc.nominal.control_tables import ControlTables

#: Keys are integers below this; sums are taken modulo it.
KEY_SPAN = 1 << 32
#: Probabilities below this are rounding of the solver, and set to 0.
_NEGLIGIBLE = 1e-12


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
        Variance of the noise; small counts, which cannot have it, have the least that leaves them
        unbiased.
    """

    k: int = 3
    largest: int = 5
    variance: float = 2.0

    def __post_init__(self) -> None:
        if self.k < 2 or self.largest < self.k:
            raise InvalidParameter(
                f"cell keys need k >= 2 and a largest noise of at least k, found {self.k} and {self.largest}"
            )
        if not 0 < self.variance < self.largest**2:
            raise InvalidParameter(
                f"the variance of the noise lies between 0 and {self.largest**2}, found {self.variance}"
            )


@dataclass(frozen=True)
class NoiseTable:
    """Probabilities of the noise by original count; all counts from `largest + k` on are alike.

    Attributes
    ----------
    noise : (2 D + 1,) int64 array, -D ... D
    probabilities : (D + k + 1, 2 D + 1) float array, one row a count
    """

    noise: np.ndarray
    probabilities: np.ndarray

    @classmethod
    def of(cls, parameters: CellKeyParameters) -> NoiseTable:
        """The table of largest entropy."""
        noise = np.arange(-parameters.largest, parameters.largest + 1)
        rows = np.zeros((parameters.largest + parameters.k + 1, len(noise)))
        rows[0, noise == 0] = 1.0
        for count in range(1, len(rows)):
            published = count + noise
            possible = (published == 0) | (published >= parameters.k)
            rows[count, possible] = _distribution(noise[possible].astype(float), parameters.variance)
        return cls(noise, rows)

    def perturb(self, counts: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Published counts, (cells,) int64, of cells with these counts and keys."""
        if counts.shape != keys.shape:
            raise ShapeMismatch(f"{counts.shape} counts for {keys.shape} keys")
        bounds = np.cumsum(self.probabilities, axis=1)
        bounds[:, -1] = 1.0
        row = np.minimum(counts, len(bounds) - 1)
        drawn = (keys.astype(np.uint64) % np.uint64(KEY_SPAN)).astype(float) / KEY_SPAN
        place = (drawn[:, None] >= bounds[row]).sum(axis=1)
        return np.asarray(counts + self.noise[place], np.int64)


def cell_keys(tables: ControlTables, combination_keys: np.ndarray) -> np.ndarray:
    """Key of every cell, (cells,) uint64.

    Parameters
    ----------
    tables : ControlTables
    combination_keys : (m,) uint64 array
        Sum of the keys of each combination's records, modulo `KEY_SPAN`.
    """
    if combination_keys.shape != (len(tables.cells),):
        raise ShapeMismatch(f"{combination_keys.shape} keys for {len(tables.cells)} combinations")
    keys = np.zeros(len(tables.original), np.uint64)
    for cells in tables.cells.T:
        np.add.at(keys, cells, combination_keys.astype(np.uint64))
    return keys % np.uint64(KEY_SPAN)


def perturbed_cells(
    tables: ControlTables, combination_keys: np.ndarray, parameters: CellKeyParameters | None = None
) -> np.ndarray:
    """Published count of every cell, (cells,) int64: 0 or at least k, off by at most D."""
    table = NoiseTable.of(parameters or CellKeyParameters())
    return table.perturb(tables.original, cell_keys(tables, combination_keys))


def _distribution(noise: np.ndarray, variance: float) -> np.ndarray:
    """Probabilities of largest entropy with mean 0 and this variance, or the least one there is.

    Its density is exp(a d + b d^2); a and b minimise the convex dual.
    """
    below, above = noise[noise <= 0].max(), noise[noise >= 0].min()
    least = -below * above
    most = -noise.min() * noise.max()
    if not least < variance < most:
        probabilities = np.zeros(len(noise))
        if below == above:
            probabilities[noise == 0] = 1.0
        else:
            probabilities[noise == below] = above / (above - below)
            probabilities[noise == above] = -below / (above - below)
        return probabilities

    def dual(multipliers: np.ndarray) -> tuple[float, np.ndarray]:
        exponent = multipliers[0] * noise + multipliers[1] * (noise**2 - variance)
        highest = exponent.max()
        weights = np.exp(exponent - highest)
        density = weights / weights.sum()
        gradient = np.array([density @ noise, density @ (noise**2 - variance)])
        return float(highest + np.log(weights.sum())), gradient

    best = minimize(dual, np.zeros(2), jac=True, method="BFGS", options={"gtol": 1e-10}).x
    exponent = best[0] * noise + best[1] * noise**2
    weights = np.exp(exponent - exponent.max())
    probabilities = weights / weights.sum()
    probabilities[probabilities < _NEGLIGIBLE] = 0.0
    return np.asarray(probabilities / probabilities.sum())
