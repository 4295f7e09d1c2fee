"""Choose the cells of a table to suppress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from microguard.sdc.algorithms.suppression import SUPPRESSION
from microguard.sdc.arguments import check_name, checked_seed
from microguard.sdc.errors import SolverFailed
from microguard.sdc.stop import Deadline, StoppedBy
from microguard.sdc.suppression.audit import Audit, audit
from microguard.sdc.suppression.chunks import Mapper, in_turn
from microguard.sdc.suppression.methods import LARGE_CELLS, Task
from microguard.sdc.suppression.problem import KINDS, SuppressionProblem, check_attackers


@dataclass(frozen=True, eq=False)
class Suppression:
    """A pattern of suppressed cells, its lower bound and its audit.

    Attributes
    ----------
    suppressed : (cells,) boolean array
    cost : float
        Sum of the costs of the suppressed cells.
    lower_bound : float
        Proved lower bound on the cost of every pattern that protects against the same attackers.
    algorithm : str
    stopped_by : "work", "proof" or "time"
    audit : Audit
    """

    suppressed: np.ndarray
    cost: float
    lower_bound: float
    algorithm: str
    stopped_by: StoppedBy
    audit: Audit

    @property
    def gap(self) -> float | None:
        """Return the relative gap between cost and lower bound; None without a positive lower bound."""
        if self.lower_bound > 0:
            return max(0.0, self.cost / self.lower_bound - 1)
        return None if self.cost > 0 else 0.0

    @property
    def optimal(self) -> bool:
        """Return whether the cost was proved to be minimal."""
        return self.stopped_by == "proof"


def suppress(
    problem: SuppressionProblem,
    *,
    effort: str = "standard",
    attackers: Sequence[str] = KINDS,
    algorithm: str = "auto",
    seed: int = 0,
    time_limit: float | None = None,
    mapper: Mapper = in_turn,
) -> Suppression:
    """Find a pattern with small cost in which every interval contains the protection levels of its primary
    cell.

    Parameters
    ----------
    mapper : Mapper
        Calls the audit with chunks of primaries; the result does not depend on it.

    Raises
    ------
    ImpossibleProtection
        If not even the suppression of all cells that may be suppressed protects a primary.
    SolverFailed
        If a linear program fails, or the audit finds a primary that the pattern does not protect.
    """
    check_name("algorithm", algorithm, tuple(SUPPRESSION))
    SUPPRESSION[algorithm].check(algorithm, effort, None)
    kinds = check_attackers(problem, attackers)
    task = Task(problem, kinds, effort, checked_seed(seed), Deadline.after(time_limit))
    chosen, bound, stopped_by = SUPPRESSION[algorithm].solve(task)
    cost = float(problem.costs[chosen].sum())
    audited = audit(problem, chosen, attackers=kinds, mapper=mapper)
    if not audited.protected:
        narrow = audited.cells[audited.too_narrow.any(axis=1)]
        raise SolverFailed(
            f"cell {narrow[0]}: the search found a sufficient interval, but the audit a narrower one "
            f"({len(narrow)} such cells). Choose another seed or effort; in a table of more than "
            f"{LARGE_CELLS:,} cells these have no effect, so lower the levels of the cell or split the table"
        )
    return Suppression(
        suppressed=chosen,
        cost=cost,
        lower_bound=min(bound, cost),
        algorithm=algorithm,
        stopped_by=stopped_by,
        audit=audited,
    )
