"""Relaxed master problem over all clusters, solved by column generation with dual smoothing and cuts.

Each iteration prices at duals between the best known ones (the *centre*) and those of the restricted master
problem (Wentges 1997). A search with limited width is used first, and exact pricing if that finds few
columns. Exact pricing at any duals gives a Lagrangian bound. A clustering has at most floor(n / k) clusters
with different roots, so

    lower_bound = sum of duals - sum of penalties times right-hand sides
                  + the floor(n / k) smallest reduced costs over the roots.

Aloise, Hansen, Rocha and Santi (2014, *Journal of Global Optimization*, 10.1007/s10898-014-0149-3) published
the first bounds by column generation for microaggregation, Gentile et al. (2020) the heuristic of
`column_generation`. Castro, Gentile and Spagnolo-Arrizabalaga (2022) split the file first.

For fractional clusterings (`shared`), the number of clusters is at most n / k, so it is rounded up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from microguard.sdc.microaggregation.column_generation.columns import Columns
from microguard.sdc.microaggregation.column_generation.master import (
    MasterProblem,
    MasterSolution,
    cut_entries,
    cut_limits,
)
from microguard.sdc.microaggregation.exact_pricing.pricing import Cuts, Priced, price
from microguard.sdc.solver import FEASIBILITY_TOLERANCE
from microguard.sdc.stop import Deadline

#: Weight of the stability centre in the duals that are priced.
_SMOOTHING = 0.6
#: Pricing searches of limited width, narrowest first: candidates per root, and evaluations per root and size.
_NARROW = ((20, 2_000), (40, 20_000), (80, 200_000))
#: Divisor of n: a pricing search that finds fewer new columns than n / this number is replaced by a wider
#: one. A round with fewer cuts on three records than n / this number also separates cuts on larger sets.
FEW = 5
#: Relative difference between bound and master problem at which column generation ends, between rounds of
#: cuts.
ROUND_TOLERANCE = 1e-4
#: Relative gaps below this count as closed.
CLOSED = 1e-9


@dataclass(frozen=True)
class Allowance:
    """Work limits of the relaxation by kind of work; `Spent` counts it.

    Attributes
    ----------
    evaluations : int
        Candidates evaluated by pricing.
    pivots : int
        Simplex iterations times rows of the master problem.
    """

    evaluations: int
    pivots: int


@dataclass(frozen=True)
class DualValues:
    """Duals of the master problem: (n,) duals of records, (cuts,) penalties."""

    duals: np.ndarray
    penalties: np.ndarray

    def towards(self, solution: MasterSolution, share: float) -> DualValues:
        """Return `share` times these duals plus (1 - share) times the duals of a solution."""
        return DualValues(
            share * self.duals + (1 - share) * solution.duals,
            share * self.penalties + (1 - share) * solution.penalties,
        )


@dataclass
class Spent:
    """Work done so far, by kind."""

    evaluations: int = 0
    pivots: int = 0
    pricings: int = 0


class Relaxation:
    """Column generation over `columns` with the current cuts.

    Parameters
    ----------
    columns : Columns
    centre : (n,) array
        Initial duals.
    allowance : Allowance
    deadline : Deadline
    shared : bool
        Whether the bound must also be valid for fractional clusterings.

    Attributes
    ----------
    lower_bound : float
        Best proved lower bound on the cost of a clustering; minus infinity before the first bound.
        Enumeration and reduced costs use its `dual_values`.
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
        self._centre = DualValues(centre.astype(float), np.empty(0))  # stability centre of the smoothing
        self._centre_bound = -np.inf  # lower bound since the last change of the rows
        self.dual_values = self._centre

    @property
    def exhausted(self) -> bool:
        """Return whether the allowed work is used up or the deadline has passed."""
        return (
            self.spent.evaluations >= self._allowance.evaluations
            or self.spent.pivots >= self._allowance.pivots
            or self._deadline.passed
        )

    def add_cuts(self, cuts: np.ndarray) -> None:
        """Add subset-row cuts, which the next `converge` uses."""
        self.master.add_cuts(cuts)
        free = np.zeros(len(cuts))
        self.dual_values, self._centre = (
            replace(dual_values, penalties=np.concatenate([dual_values.penalties, free]))
            for dual_values in (self.dual_values, self._centre)
        )
        self._centre_bound = -np.inf

    def converge(self, tolerance: float, enough: float = np.inf) -> bool:
        """Generate columns until the relative difference between bound and master problem is at most
        `tolerance`.

        The generation also ends if the bound reaches `enough`. Return False if the allowance is exhausted
        before.
        """
        share = _SMOOTHING
        stage = 0
        while not self.exhausted:
            solution = self._solve()
            if solution is None:
                return False
            self.solution = solution
            if solution.objective - self._centre_bound <= tolerance * abs(solution.objective):
                return True
            dual_values = self._centre.towards(solution, share)
            exact = stage == len(_NARROW)
            priced = self._price(dual_values, stage)
            added = self.master.add_columns(priced.members)
            if exact and priced.complete:  # a search of limited width proves no bound
                paid = float(dual_values.penalties @ cut_limits(self.master.cuts))
                least = priced.least_sum(self._most_clusters)
                bound = float(dual_values.duals.sum() - paid + least)
                if bound > self._centre_bound:
                    self._centre_bound, self._centre = bound, dual_values
                if bound > self.lower_bound:
                    self.lower_bound, self.dual_values = bound, dual_values
                if self.lower_bound >= enough:
                    return True
            elif exact:
                return False
            else:
                self._centre = dual_values
            if added == 0 and exact:
                if share == 0.0:
                    return True
                share = share / 2 if share > 0.1 else 0.0
            if added * FEW < self.master.n and not exact:
                stage += 1
        return False

    def _solve(self) -> MasterSolution | None:
        solution = self.master.solve(self._deadline.remaining)
        if solution is not None:
            rows = self.master.n + len(self.master.cuts)
            self.spent.pivots += solution.iterations * rows
        return solution

    @property
    def records_by_dual(self) -> np.ndarray:
        """Return the records in descending order of the duals of `lower_bound`, (n,); the first one is the
        first root.
        """
        return np.lexsort((np.arange(self.master.n), -self.dual_values.duals))

    def enumerate(self, threshold: float, first: int, *, per_root: int, most: int) -> tuple[np.ndarray, int]:
        """Enumerate all clusters of the next roots whose reduced cost is below `threshold`.

        The enumeration starts with the root at place `first` of `records_by_dual`. It ends at a root with
        `per_root` or more clusters, at about `most` clusters in total, or if the allowance is exhausted. The
        second result is the place of the first root that is not enumerated.
        """
        priced = self._price(
            self.dual_values,
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
        """Return the records of the cuts with a positive penalty, (cuts, width)."""
        return self.master.cuts[self.dual_values.penalties > 0]

    def reduced_costs(self) -> np.ndarray:
        """Return the reduced costs of all columns at the duals of `lower_bound`, (columns,)."""
        return self.reduced_costs_of(np.arange(len(self.columns)))

    def reduced_costs_of(self, chosen: np.ndarray) -> np.ndarray:
        """Return the reduced costs of some columns at the duals of `lower_bound`, (chosen,)."""
        incidence = self.columns.incidence(chosen)
        paid = cut_entries(self.master.cuts, incidence).T @ self.dual_values.penalties
        return self.columns.costs[chosen] - incidence.T @ self.dual_values.duals + paid

    def _price(
        self,
        dual_values: DualValues,
        stage: int,
        threshold: float | None = None,
        keep: int = 2,
        most_columns: int | None = None,
        roots: tuple[int, int] | None = None,
    ) -> Priced:
        width, root_work = _NARROW[stage] if stage < len(_NARROW) else (None, None)
        active = dual_values.penalties > 0
        k = self.columns.k  # without cuts no larger cluster is needed; with cuts few are
        largest = min(k + int(active.any()), 2 * k - 1) if stage < len(_NARROW) else None
        priced = price(
            self.columns.distances,
            k,
            dual_values.duals,
            Cuts(self.master.cuts[active], dual_values.penalties[active]),
            # Duals of the master problem are feasible up to this tolerance, which lowers the bound by
            # tolerance / k per record. That is less than `OPTIMALITY_TOLERANCE`, so integral solutions are
            # proved without an enumerated list.
            threshold=-FEASIBILITY_TOLERANCE if threshold is None else threshold,
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
