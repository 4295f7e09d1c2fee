"""Cuts of contributors: attack a pattern by witnesses; each failure gives a cut.

Patterns of successive integer programs differ in few cells. A primary cell whose witnesses lost no cell is
not attacked again.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.suppression.cover import complete
from microguard.sdc.suppression.cuts import Cut
from microguard.sdc.suppression.knowledge import OUTSIDER
from microguard.sdc.suppression.local_cuts import LocalCuts
from microguard.sdc.suppression.opening import by_level, cheapest_witness
from microguard.sdc.suppression.pattern import Pattern
from microguard.sdc.suppression.ranges import Ranges
from microguard.sdc.suppression.relaxation import Relaxation
from microguard.sdc.suppression.separation import Separation
from microguard.sdc.suppression.witnesses import Witnesses


class ContributorCuts:
    """Attacks of all contributors on one pattern after the other.

    Parameters
    ----------
    witnesses, separation : of one problem
    """

    def __init__(self, witnesses: Witnesses, separation: Separation) -> None:
        self._witnesses, self._separation = witnesses, separation
        problem = separation.problem
        self._pattern = Pattern(problem.must.copy())
        self._primaries = by_level(witnesses, np.flatnonzero(problem.primary))

    def of(self, suppressed: np.ndarray) -> tuple[list[Cut], Pattern | None]:
        """Return the cuts that a pattern violates, of one attacker for each unprotected primary cell; or the
        pattern with its witnesses if all are protected.

        Parameters
        ----------
        suppressed : (cells,) boolean array; protects all primary cells from the outsider
        """
        pattern = self._pattern
        pattern.suppressed[:] = suppressed
        waiting = self._separation.problem.primary.copy()
        waiting[list(pattern.witnesses)] = False
        cuts: list[Cut] = []
        ranges = None
        failing = False
        for primary in self._primaries:
            found, failed = self._witnesses.of(primary, pattern, thorough=2)
            if failed:
                failing = True
                ranges = ranges or Ranges(self._separation.problem, suppressed.astype(float))
                cuts += self._separation.cuts_of(ranges, primary, failed[0][1])
                pattern.put(primary, pattern.witnesses.get(primary, {}) | found)
            else:
                pattern.put(primary, found)
            waiting[primary] = False
            if OUTSIDER in found:
                self._witnesses.share(pattern, found[OUTSIDER], waiting)
        if failing:
            return cuts, None
        whole = Pattern(suppressed.copy())
        for primary, group in pattern.witnesses.items():
            whole.put(primary, group)
        return [], whole

    def completed(self, suppressed: np.ndarray, relaxation: Relaxation, local: LocalCuts) -> Pattern:
        """Suppress further cells until no attack succeeds, and return the pattern with its witnesses.

        The cuts of each failure are added to the relaxation, and cheap cells that satisfy them are suppressed
        before the next attack, so that primaries which fail by the same cut give it once.

        Parameters
        ----------
        suppressed : (cells,) boolean array
        relaxation, local : of the same problem
        """
        problem, witnesses = self._separation.problem, self._witnesses
        pattern = Pattern(suppressed | problem.must)
        waiting = problem.primary.copy()
        costs = np.where(problem.keep, np.inf, problem.costs)
        ranges = Ranges(problem, np.ones(problem.cells))
        for primary in self._primaries:
            waiting[primary] = False
            found, failed = witnesses.of(primary, pattern, thorough=1)
            while failed:
                cuts = local.of(pattern.suppressed, failed[0])
                if not cuts:
                    found, failed = witnesses.of(primary, pattern, thorough=2)
                    if not failed:
                        break
                    ranges.x = pattern.suppressed.astype(float)
                    cuts = self._separation.cuts_of(ranges, primary, failed[0][1])
                relaxation.add(cuts)
                rows = relaxation.pool.matrix([cut for cut in cuts if cut.least > 0])
                more = complete(*rows, pattern.suppressed, problem.costs, ~problem.keep)
                if np.array_equal(more, pattern.suppressed):
                    found = cheapest_witness(witnesses, pattern, costs, primary)
                    break
                pattern.suppressed[:] = more
                found, failed = witnesses.of(primary, pattern, thorough=1)
            pattern.put(primary, found)
            witnesses.share(pattern, found[OUTSIDER], waiting)
        return pattern
