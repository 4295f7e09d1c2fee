"""Names of the two-step methods of Cost 2023, section 6.2.5: own-FIA.

F is the method for the fractional partition (e exact, h heuristic). I is the method for each auxiliary
problem of the integer partition (e, h). A is the method for the representatives (e exact, g greedy, c clique
heuristic).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from microguard.sdc.nominal.partitioning.construction import Solution

Aggregation = Literal["exact", "greedy", "clique"]


@dataclass(frozen=True)
class TwoSteps:
    """The three methods that a name of the thesis encodes."""

    fractional: Solution
    integer: Solution
    aggregation: Aggregation


_SOLUTIONS: dict[str, Solution] = {"e": "exact", "h": "heuristic"}
_AGGREGATIONS: dict[str, Aggregation] = {"e": "exact", "g": "greedy", "c": "clique"}

#: own-eee, own-eeg, ... own-hhc: all twelve.
TWO_STEP: dict[str, TwoSteps] = {
    f"own-{f}{i}{a}": TwoSteps(fractional, integer, aggregation)
    for f, fractional in _SOLUTIONS.items()
    for i, integer in _SOLUTIONS.items()
    for a, aggregation in _AGGREGATIONS.items()
}
