"""The relaxed master problem solved over all clusters: column generation with smoothed duals, and cuts.

Each round prices at a point between the best duals known (the *centre*) and the duals of the restricted
master problem (Wentges 1997), first by a narrow search, then, once that finds little, exactly. Exact
pricing at any duals gives a Lagrangian bound: a clustering has at most floor(n / k) clusters, and they
have different roots, so

    lower_bound = sum of duals - sum of penalties times right sides + sum of rewards
                  + the floor(n / k) least reduced costs over the roots.

Clusters chosen to shares are at most n / k in all and one of each root: that many rounded up.
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
from microguard.sdc.microaggregation.exact_pricing.pricing import Cuts, Priced, Rewards, price
from microguard.sdc.stop import Deadline

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
#: Relative gap that counts as closed: reduced costs are priced to 1e-6 of the mean loss per record.
CLOSED = 1e-9


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


@dataclass(frozen=True)
class Prices:
    """Prices of the rows of the master problem: (n,) duals, (cuts,) penalties, (pairs,) rewards."""

    duals: np.ndarray
    penalties: np.ndarray
    rewards: np.ndarray

    def towards(self, solution: MasterSolution, share: float) -> Prices:
        """Between these, to a share, and those of a solution."""
        return Prices(
            share * self.duals + (1 - share) * solution.duals,
            share * self.penalties + (1 - share) * solution.penalties,
            share * self.rewards + (1 - share) * solution.rewards,
        )


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
    tolerance : float
        Reduced costs above minus this are not looked for.

    Attributes
    ----------
    lower_bound : float
        Best proved lower bound on the cost of a clustering, since `restrict` of one that keeps to it; minus
        infinity before the first. Lists and reduced costs are at its `prices`.
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
        tolerance: float = REDUCED_COST_TOLERANCE,
    ) -> None:
        self.columns = columns
        n, k = len(columns.distances), columns.k
        self._most_clusters = -(-n // k) if shared else n // k
        self.master = MasterProblem(columns)
        self.lower_bound = -np.inf
        self.solution: MasterSolution | None = None
        self.spent = Spent()
        self._tolerance = tolerance
        self._allowance = allowance
        self._deadline = deadline
        self._distances = columns.distances
        self._centre = Prices(centre.astype(float), np.empty(0), np.empty(0))  # smoothing draws to them
        self._bound_of_centre = -np.inf  # since the rows last changed
        self.prices = self._centre

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
        self.prices, self._centre = (
            replace(prices, penalties=np.concatenate([prices.penalties, free]))
            for prices in (self.prices, self._centre)
        )
        self._bound_of_centre = -np.inf

    def restrict(self, apart: np.ndarray, together: np.ndarray, centre: Prices) -> None:
        """Restrict to clusterings that hold some pairs of records in no cluster, and others in one.

        Parameters
        ----------
        apart, together : (pairs, 2) int arrays
            Instead of those of the last call.
        centre : Prices
            To begin with; of as many pairs as were together in any call before.
        """
        self.master.restrict(apart, together)
        self._distances = self.columns.distances.copy()
        for first, second in (apart.T, apart.T[::-1]):
            self._distances[first, second] = np.inf
        required = (self.master.pairs[:, None, :] == together[None, :, :]).all(axis=2).any(axis=1)
        rewards = np.zeros(len(required))
        rewards[: len(centre.rewards)] = centre.rewards
        self.prices = self._centre = replace(centre, rewards=np.where(required, rewards, 0.0))
        self.lower_bound = self._bound_of_centre = -np.inf

    def converge(self, tolerance: float, enough: float = np.inf) -> bool:
        """Generate columns until the bound is within `tolerance` (relative) of the master problem.

        Returns False where the allowance ended it before. Ends as well once the bound reaches `enough`.
        """
        share = _SMOOTHING
        wide = [stage for stage, (width, _) in enumerate(_NARROW) if width >= _WIDTH_PER_K * self.columns.k]
        stage = wide[0] if wide else len(_NARROW) - 1
        while not self.exhausted:
            solution = self._solve()
            if solution is None:
                return False
            self.solution = solution
            if solution.objective - self._bound_of_centre <= tolerance * abs(solution.objective):
                return True
            prices = self._centre.towards(solution, share)
            exact = stage == len(_NARROW)
            priced = self._price(prices, stage)
            added = self.master.add_columns(priced.members)
            if exact and priced.complete:  # a narrow search leaves out larger clusters
                paid = float(prices.penalties @ cut_limits(self.master.cuts))
                least = priced.least_sum(self._most_clusters)
                bound = float(prices.duals.sum() - paid + prices.rewards.sum() + least)
                if bound > self._bound_of_centre:
                    self._bound_of_centre, self._centre = bound, prices
                if bound > self.lower_bound:
                    self.lower_bound, self.prices = bound, prices
                if self.lower_bound >= enough:
                    return True
            elif exact:
                return False
            else:
                self._centre = prices
            if added == 0 and exact:
                if share == 0.0:
                    return True
                share = share / 2 if share > 0.1 else 0.0
            if added * _FEW < self.master.n and not exact:
                stage += 1
        return False

    def at_hand(self, apart: np.ndarray, together: np.ndarray) -> float:
        """The master problem restricted otherwise, over the columns at hand; infinite where time ended it."""
        self.master.restrict(apart, together)
        solution = self._solve()
        return np.inf if solution is None else solution.objective

    def _solve(self) -> MasterSolution | None:
        solution = self.master.solve(self._deadline.remaining)
        if solution is not None:
            rows = self.master.n + len(self.master.cuts) + len(self.master.pairs)
            self.spent.pivots += solution.iterations * rows
        return solution

    @property
    def records_by_dual(self) -> np.ndarray:
        """(n,) positions by falling dual of `lower_bound`: of a cluster, the root comes first."""
        return np.lexsort((np.arange(self.master.n), -self.prices.duals))

    def enumerate(self, threshold: float, first: int, *, per_root: int, most: int) -> tuple[np.ndarray, int]:
        """All clusters of the next roots with a reduced cost below `threshold`.

        From the root at place `first` of `records_by_dual` to before the place that is given as well: it is
        the first with `per_root` such clusters or more, or the one that the allowance or about `most`
        clusters ended at.
        """
        priced = self._price(
            self.prices,
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
        return self.master.cuts[self.prices.penalties > 0]

    def reduced_costs(self) -> np.ndarray:
        """(columns,) reduced costs at the duals of `lower_bound`."""
        return self.reduced_costs_of(np.arange(len(self.columns)))

    def reduced_costs_of(self, chosen: np.ndarray) -> np.ndarray:
        """(chosen,) reduced costs of some columns at the duals of `lower_bound`."""
        incidence = self.columns.incidence(chosen)
        paid = cut_entries(self.master.cuts, incidence).T @ self.prices.penalties
        rewarded = cut_entries(self.master.pairs, incidence).T @ self.prices.rewards
        return self.columns.costs[chosen] - incidence.T @ self.prices.duals + paid - rewarded

    def _price(
        self,
        prices: Prices,
        stage: int,
        threshold: float | None = None,
        keep: int = 2,
        most_columns: int | None = None,
        roots: tuple[int, int] | None = None,
    ) -> Priced:
        width, root_work = _NARROW[stage] if stage < len(_NARROW) else (None, None)
        active, rewarded = prices.penalties > 0, prices.rewards > 0
        k = self.columns.k  # without cuts no larger cluster is needed, with them few are
        largest = min(k + int(active.any()), 2 * k - 1) if stage < len(_NARROW) else None
        priced = price(
            self._distances,
            k,
            prices.duals,
            Cuts(self.master.cuts[active], prices.penalties[active]),
            rewards=Rewards(self.master.pairs[rewarded], prices.rewards[rewarded]),
            threshold=-self._tolerance if threshold is None else threshold,
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
