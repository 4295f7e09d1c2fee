"""Algorithms of `sdc.cta`: controlled tabular adjustment.

The function of a row searches for the directions (up or down) of the sensitive cells.

    search(task: Task) -> int

The function evaluates directions through ``task.search`` and returns the number of branch-and-bound nodes it
used.
"""

from __future__ import annotations

from microguard.sdc.algorithms.algorithm import Algorithm

LOCAL_SEARCH = "local-search"
ADJUSTMENT: dict[str, Algorithm] = {
    "exact": Algorithm("cta.methods:local"),
    "alternate": Algorithm("cta.methods:alternating"),
    "random": Algorithm("cta.methods:random"),
    "hybrid": Algorithm("cta.methods:hybrid_of_groups"),
    "hybrid-swaps": Algorithm("cta.methods:hybrid_with_swaps"),
    "scatter-search": Algorithm("cta.methods:scattered"),
    "learning": Algorithm("cta.methods:learned"),
    LOCAL_SEARCH: Algorithm("cta.methods:local"),
}
