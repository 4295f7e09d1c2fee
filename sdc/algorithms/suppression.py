"""Algorithms of `sdc.suppression` for cell suppression: each row names a function that chooses the cells to
suppress.

    solve(task: Task) -> (chosen, lower_bound, stopped_by)

"auto" searches for a proof of optimality, within limits, if the table is small or the effort is "exact".
Otherwise "auto" is the same as "heuristic".
"""

from __future__ import annotations

from microguard.sdc.algorithms.algorithm import Algorithm

SUPPRESSION: dict[str, Algorithm] = {
    "auto": Algorithm("suppression.methods:by_size"),
    "exact": Algorithm("suppression.methods:exact"),
    "heuristic": Algorithm("suppression.methods:heuristic", efforts=("fast", "standard", "thorough")),
}
