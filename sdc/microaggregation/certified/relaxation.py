"""The relaxed master problem solved over all clusters: column generation with smoothed duals, and cuts.

Each round prices at a point between the best duals known (the *centre*) and the duals of the restricted
master problem (Wentges 1997), first by a narrow search, then, once that finds little, exactly. Exact
pricing at any duals gives a Lagrangian bound: a clustering has at most floor(n / k) clusters, and they
have different roots, so

    lower_bound = sum of duals - sum of penalties times right sides
                  + the floor(n / k) least reduced costs over the roots.

Clusters chosen to shares are at most n / k in all and one of each root: that many rounded up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdc.microaggregation.column_generation.columns import Columns
from sdc.microaggregation.column_generation.master import (
    MasterProblem,
    MasterSolution,
    cut_entries,
    cut_limits,
)
from sdc.microaggregation.exact_pricing.pricing import Cuts, Priced, price
from sdc.stop import Deadline

#: Share of the centre in the duals that are priced.
_SMOOTHING = 0.6
#: Candidates per root, and evaluations per root and size, of the narrow searches in growing order.
_NARROW = ((20, 2_000), (40, 20_000), (80, 200_000))
#: Candidates per root that a narrow search has at least for each record of a cluster.
_WIDTH_PER_K = 4
#: A narrow search that finds fewer new columns than n over this gives way to a wider one.
_FEW = 20
#: Share of the evaluations that is left to the lists of clusters.
LISTED_SHARE = 0.2
#: Reduced costs above minus this are not looked for, in units of the mean loss per record (the
#: relaxation's distances are scaled to it); it costs the bound at most 1 / k of it per record.
REDUCED_COST_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Allowance:
    """Work the relaxation may do, by kind; counted down in `Spent`.

    Attributes
    ----------
    evaluations : int
        Candidates evaluated by pricing.
    pivots : int
        Simplex iterations times rows of the master problem.
    """

    evaluations: int
    pivots: int


@dataclass
class Spent:
    """Work done so far."""

    evaluations: int = 0
    pivots: int = 0
    pricings: int = 0


class Relaxation:
    """Column generation over `columns` with the cuts added so far.

    Parameters
    ----------
    shared : bool
        Whether the bound is to hold of clusters chosen to shares too, not only of clusterings.

    Attributes
    ----------
    lower_bound : float
        Best proved lower bound on the cost of a clustering; minus infinity before the first. Lists and
        reduced costs are at its duals.
    solution : MasterSolution or None
        Last solution of the restricted master problem.
    """

    def __init__(
        self,
        columns: Columns,
        centre: np.ndarray,
        allowance: Allowance,
        deadline: Deadline,
        *,
        shared: bool = False,
    ) -> None:
        self.columns = columns
        n, k = len(columns.distances), columns.k
        self._most_clusters = -(-n // k) if shared else n // k
        self.master = MasterProblem(columns)
        self.lower_bound = -np.inf
        self.solution: MasterSolution | None = None
        self.spent = Spent()
        self._allowance = allowance
        self._deadline = deadline
        self._centre = centre.astype(float), np.empty(0)  # duals and penalties that smoothing draws to
        self._bound_of_centre = -np.inf  # since the cuts last changed
        self._duals, self._penalties = self._centre  # of `lower_bound`

    @property
    def exhausted(self) -> bool:
        """Whether the allowance, but for what lists are to have, is spent or the deadline has passed."""
        return (
            self.spent.evaluations >= (1.0 - LISTED_SHARE) * self._allowance.evaluations
            or self.spent.pivots >= self._allowance.pivots
            or self._deadline.passed
        )

    def add_cuts(self, cuts: np.ndarray) -> None:
        """Add subset-row cuts; the next `converge` prices with their penalties."""
        self.master.add_cuts(cuts)
        free = np.zeros(len(cuts))
        self._penalties = np.concatenate([self._penalties, free])
        self._centre = self._centre[0], np.concatenate([self._centre[1], free])
        self._bound_of_centre = -np.inf

    def converge(self, tolerance: float, enough: float = np.inf) -> bool:
        """Generate columns until the bound is within `tolerance` (relative) of the master problem.

        Returns False where the allowance ended it before. Ends as well once the bound reaches `enough`.
        """
        share = _SMOOTHING
        wide = [stage for stage, (width, _) in enumerate(_NARROW) if width >= _WIDTH_PER_K * self.columns.k]
        stage = wide[0] if wide else len(_NARROW) - 1
        while not self.exhausted:
            solution = self.master.solve(self._deadline.remaining)
            if solution is None:
                return False
            self.solution = solution
            self.spent.pivots += solution.iterations * (self.master.n + len(self.master.cuts))
            if solution.objective - self._bound_of_centre <= tolerance * abs(solution.objective):
                return True
            duals = share * self._centre[0] + (1 - share) * solution.duals
            penalties = share * self._centre[1] + (1 - share) * solution.penalties
            exact = stage == len(_NARROW)
            priced = self._price(duals, penalties, stage)
            added = self.master.add_columns(priced.members)
            if priced.complete:
                paid = float(penalties @ cut_limits(self.master.cuts))
                bound = duals.sum() - paid + priced.least_sum(self._most_clusters)
                if bound > self._bound_of_centre:
                    self._bound_of_centre, self._centre = bound, (duals, penalties)
                if bound > self.lower_bound:
                    self.lower_bound, self._duals, self._penalties = bound, duals, penalties
                if self.lower_bound >= enough:
                    return True
            elif exact:
                return False
            else:
                self._centre = duals, penalties
            if added == 0 and exact:
                if share == 0.0:
                    return True
                share = share / 2 if share > 0.1 else 0.0
            if added * _FEW < self.master.n and not exact:
                stage += 1
        return False

    @property
    def records_by_dual(self) -> np.ndarray:
        """(n,) positions by falling dual of `lower_bound`: of a cluster, the root comes first."""
        return np.lexsort((np.arange(len(self._duals)), -self._duals))

    def enumerate(self, threshold: float, first: int, *, per_root: int, most: int) -> tuple[np.ndarray, int]:
        """All clusters of the next roots with a reduced cost below `threshold`.

        From the root at place `first` of `records_by_dual` to before the place that is given as well: it is
        the first with `per_root` such clusters or more, or the one that the allowance or about `most`
        clusters ended at.
        """
        priced = self._price(
            self._duals,
            self._penalties,
            len(_NARROW),
            threshold=threshold,
            keep=per_root,
            most_columns=most,
            roots=(first, self.master.n),
        )
        place = np.empty(self.master.n + 1, dtype=np.int64)
        place[self.records_by_dual], place[-1] = np.arange(self.master.n), self.master.n
        return priced.members[place[priced.members].min(axis=1) < priced.listed], priced.listed

    @property
    def binding(self) -> np.ndarray:
        """(cuts, width) records of the cuts that have a penalty."""
        return self.master.cuts[self._penalties > 0]

    def reduced_costs(self) -> np.ndarray:
        """(columns,) reduced costs at the duals of `lower_bound`."""
        return self.reduced_costs_of(np.arange(len(self.columns)))

    def reduced_costs_of(self, chosen: np.ndarray) -> np.ndarray:
        """(chosen,) reduced costs of some columns at the duals of `lower_bound`."""
        incidence = self.columns.incidence(chosen)
        paid = cut_entries(self.master.cuts, incidence).T @ self._penalties
        return self.columns.costs[chosen] - incidence.T @ self._duals + paid

    def _price(
        self,
        duals: np.ndarray,
        penalties: np.ndarray,
        stage: int,
        threshold: float = -REDUCED_COST_TOLERANCE,
        keep: int = 2,
        most_columns: int | None = None,
        roots: tuple[int, int] | None = None,
    ) -> Priced:
        width, root_work = _NARROW[stage] if stage < len(_NARROW) else (None, None)
        active = penalties > 0
        k = self.columns.k  # without cuts no larger cluster is needed, with them few are
        largest = min(k + int(active.any()), 2 * k - 1) if stage < len(_NARROW) else None
        priced = price(
            self.columns.distances,
            k,
            duals,
            Cuts(self.master.cuts[active], penalties[active]),
            threshold=threshold,
            largest=largest,
            keep=keep,
            width=width,
            root_work=root_work,
            most_work=self._allowance.evaluations - self.spent.evaluations,
            most_columns=most_columns,
            roots=roots,
            deadline=self._deadline,
        )
        self.spent.evaluations += priced.work
        self.spent.pricings += 1
        return priced
