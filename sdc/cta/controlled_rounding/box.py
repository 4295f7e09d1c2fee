"""Bounds on the rounded value of each cell, in units of the base."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Box:
    """Two adjacent multiples of the base for each cell.

    Attributes
    ----------
    lower, upper : (cells,) whole numbers
        The multiples below and above each value; equal if the value is a multiple.
    fixed : (cells,) boolean array
        Zeros and cells published before, whose bounds are never widened.
    """

    lower: np.ndarray
    upper: np.ndarray
    fixed: np.ndarray

    @classmethod
    def from_values(cls, shares: np.ndarray, held: np.ndarray) -> Box:
        """Compute the bounds of values (cells,) in units of the base.

        `held` (cells,) is the value a cell was published with before, NaN if it was not.
        """
        published_before = np.isfinite(held)
        lower = np.where(published_before, held, np.floor(shares))
        upper = np.where(published_before, held, np.ceil(shares))
        return cls(lower, upper, published_before | (shares == 0))

    def widened(self, bases: int) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper bounds widened by `bases` bases, not below zero."""
        lower = np.where(self.fixed, self.lower, np.maximum(self.lower - bases, 0.0))
        return lower, np.where(self.fixed, self.upper, self.upper + bases)

    def violation(self, multiples: np.ndarray) -> np.ndarray:
        """Return by how many bases each cell exceeds its bounds, (cells,)."""
        return np.maximum(np.maximum(multiples - self.upper, self.lower - multiples), 0.0)
