"""Algorithms of `sdc.suppression`: cell suppression. The function of a row chooses the cells.

solve(problem, kinds, deadline) -> (chosen, lower_bound, stopped_by)
"""

from __future__ import annotations

from microguard.sdc.algorithms.algorithm import Algorithm

SUPPRESSION: dict[str, Algorithm] = {
    "auto": Algorithm("suppression.suppress:solve_exactly"),
    "exact": Algorithm("suppression.suppress:solve_exactly"),
}
