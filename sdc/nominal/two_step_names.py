"""Names of the two-step methods of Cost 2023, section 6.2.5: own-FIA.

F is how the fractional partition is found (e exact, h heuristic), I how each auxiliary problem of the
integer one is solved (e, h), A how representatives are chosen (e exact, g greedy, c clique heuristic).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from microguard.sdc.nominal.partitioning.construction import Solution

Aggregation = Literal["exact", "greedy", "clique"]


@dataclass(frozen=True)
class TwoSteps:
    """The three choices that a name of the thesis stands for."""

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
