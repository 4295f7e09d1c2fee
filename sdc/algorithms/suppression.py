"""Algorithms of `sdc.suppression`: cell suppression. The function of a row chooses the cells.

    solve(task: Task) -> (chosen, lower_bound, stopped_by)

"auto" is "exact" for tables of a size that it usually proves, and "heuristic" for larger ones.
"""

from __future__ import annotations

from microguard.sdc.algorithms.algorithm import Algorithm

SUPPRESSION: dict[str, Algorithm] = {
    "auto": Algorithm("suppression.methods:by_size"),
    "exact": Algorithm("suppression.methods:exact"),
    "heuristic": Algorithm("suppression.methods:heuristic", efforts=("fast", "standard", "thorough")),
}
