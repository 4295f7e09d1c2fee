"""The multiples of the base that each cell may become, in units of the base."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Box:
    """Ends of what cells may become.

    Attributes
    ----------
    lower, upper : (cells,) whole numbers: the multiples next to each value, twice the same where it is one
    fixed : (cells,) boolean array: zeros, and cells that stand published, which nothing relaxes
    """

    lower: np.ndarray
    upper: np.ndarray
    fixed: np.ndarray

    @classmethod
    def around(cls, shares: np.ndarray, held: np.ndarray) -> Box:
        """Of values in units of the base; `held` (cells,) is what a cell stands published with, or NaN."""
        standing = np.isfinite(held)
        lower = np.where(standing, held, np.floor(shares))
        upper = np.where(standing, held, np.ceil(shares))
        return cls(lower, upper, standing | (shares == 0))

    def wider(self, bases: int) -> tuple[np.ndarray, np.ndarray]:
        """Ends that lie so many bases further out, none below zero."""
        lower = np.where(self.fixed, self.lower, np.maximum(self.lower - bases, 0.0))
        return lower, np.where(self.fixed, self.upper, self.upper + bases)

    def beyond(self, multiples: np.ndarray) -> np.ndarray:
        """(cells,) how many bases beyond the box each cell lies."""
        return np.maximum(np.maximum(multiples - self.upper, self.lower - multiples), 0.0)
