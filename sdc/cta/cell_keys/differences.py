"""Find totals that differ from their only published part, which shows that parts published as 0 are not all
empty.

The same records have the same noise. So if all records of a total are in one part, the total and the part
have the same published value. If the published values differ, other parts contain records, however few
(differencing: Asghar and Kaafar 2020, Rinott, O'Keefe, Shlomo and Skinner 2018). If there is only one other
part, it certainly contains records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.cell_keys.posterior import Candidates
from scipy import sparse

#: Lower bound on probabilities, so that their logarithms are finite.
_LEAST_ODDS = 1e-300


@dataclass(frozen=True, eq=False)
class Differences:
    """Sets of parts published as 0, of which at least one is not empty.

    Attributes
    ----------
    hidden : sparse (differing totals, cells)
        1 for each part of a differing total that is published as 0.
    """

    hidden: sparse.csr_matrix

    @classmethod
    def of(cls, relations: sparse.csr_matrix, published: np.ndarray) -> Differences:
        """Find the totals that differ from the only part of them that is published above 0.

        Parameters
        ----------
        relations : sparse (constraints, cells), -1 for the total of a constraint
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
        """Return the cells published as 0 whose true count is certainly not 0: the only such part of a total
        that differs.
        """
        return np.unique(self.hidden[np.diff(self.hidden.indptr) == 1].indices)

    def known(self, found: Candidates, cells: np.ndarray, alone: Candidates) -> Candidates:
        """Update the posterior of some cells by the information which totals differ.

        Parameters
        ----------
        found : posterior of these cells without this knowledge
        cells : (chosen,) positions
        alone : posterior of all cells, each given its own published value only

        Notes
        -----
        A cell can be 0 only if each of its differing totals has another hidden part that is not 0. Its odds
        of 0 are therefore multiplied by one minus the odds that all other hidden parts are 0 (one pass of
        message passing).
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
    """Return the probability that each cell is empty, (cells,)."""
    return np.asarray(np.where(found.counts == 0, found.odds, 0.0).sum(axis=1))
