"""Find totals that differ from their only non-zero part: their parts published as 0 are not all empty.

The same records have the same noise. So a total whose records all are in one part is published exactly as
that part. If it is published at another value, other parts have records, however few (differencing: Asghar
and Kaafar 2020, Rinott, O'Keefe, Shlomo and Skinner 2018). Of only one such part this is certain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.cell_keys.posterior import Candidates
from scipy import sparse

#: Lower bound of probabilities, so that their logarithms are finite.
_LEAST_ODDS = 1e-300


@dataclass(frozen=True, eq=False)
class Differences:
    """Sets of parts published as 0, at least one of which is not empty.

    Attributes
    ----------
    hidden : sparse (differing totals, cells)
        1 for each of those parts.
    """

    hidden: sparse.csr_matrix

    @classmethod
    def of(cls, relations: sparse.csr_matrix, published: np.ndarray) -> Differences:
        """Find the totals that differ.

        Parameters
        ----------
        relations : sparse (lines, cells), -1 for the total of a line
        published : (cells,) counts
        """
        parts, totals = (relations > 0).astype(float), (relations < 0).astype(float)
        shown = np.asarray(published) > 0
        one = (parts @ shown.astype(float) == 1) & (totals @ np.ones(len(shown)) == 1)
        differs = one & (parts @ published != totals @ published)
        hidden = sparse.csr_matrix(parts.tocsr()[differs] @ sparse.diags_array((~shown).astype(float)))
        hidden.eliminate_zeros()
        return cls(hidden)

    @property
    def occupied(self) -> np.ndarray:
        """Return the cells that are certainly not 0: the only hidden part of a differing total."""
        return np.unique(self.hidden[np.diff(self.hidden.indptr) == 1].indices)

    def known(self, found: Candidates, cells: np.ndarray, alone: Candidates) -> Candidates:
        """Return the posterior of some cells, also given which totals differ.

        Parameters
        ----------
        found : of these cells, without
        cells : (chosen,) positions
        alone : of all cells

        Notes
        -----
        A cell is 0 only where another hidden part of each of its differing totals is not: its odds of 0 are
        multiplied by one less the odds that all the others are 0 (one pass of messages).
        """
        empty = _odds_of_zero(alone)
        empty[cells] = _odds_of_zero(found)
        logarithms = np.log(np.maximum(empty, _LEAST_ODDS))
        lines, parts = self.hidden.nonzero()
        others = np.exp(np.minimum((self.hidden @ logarithms)[lines] - logarithms[parts], 0.0))
        factor = np.ones(len(empty))
        np.multiply.at(factor, parts, 1.0 - others)
        odds = np.where(found.counts == 0, found.odds * factor[cells][:, None], found.odds)
        return Candidates(found.first, odds / odds.sum(axis=1, keepdims=True))


def _odds_of_zero(found: Candidates) -> np.ndarray:
    """Return the (cells,) probability that a cell is empty."""
    return np.asarray(np.where(found.counts == 0, found.odds, 0.0).sum(axis=1))
