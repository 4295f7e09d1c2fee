"""Algorithms of `sdc.nominal`: protect the frequencies of key combinations, so that each is 0 or at least k.

The function of a row is

    function(task: ProtectionTask, name: str) -> ProtectedCounts

The function keeps the total of each region and makes every count 0 or at least k. It never assigns records to
a key combination that did not occur.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le
from microguard.sdc.algorithms.algorithm import EFFORTS, PROGRAMS, UNPROVED, Algorithm
from microguard.sdc.algorithms.parameters import Parameters
from microguard.sdc.errors import InvalidParameter

Solution = Literal["exact", "heuristic"]
Aggregation = Literal["exact", "greedy", "clique"]
#: A table dimension without an entry uses the entry of the next lower dimension that has one.
ByDimension = Mapping[int, float]
#: Bounds or weights, keyed by table dimension or by the variable names of one table. An entry for the names
#: takes precedence over an entry for the dimension.
ByTable = Mapping[Any, float]
LOCAL_SEARCH, CHI_EXACT, RANDOM = "local-search", "chi-exact", "random"
#: Two steps, each solved by a program of this package: first the partition with the least weight, then the
#: representatives with the least chi-square. Both steps are proved optimal for files of a few hundred
#: records.
TWO_OPTIMAL = "two-step-optimal"


@dataclass(frozen=True)
class TwoSteps:
    """The three choices that are encoded in a name own-FIA (Cost 2023, 6.2.5).

    Attributes
    ----------
    fractional : how the fractional partition is found, F (e exact, h heuristic)
    integer : how each auxiliary problem of the integer partition is solved, I (e, h)
    aggregation : how representatives are chosen, A (e exact, g greedy, c clique heuristic)
    """

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


@dataclass(frozen=True)
class Guidance(Parameters):
    """How the integer partition of an own-... algorithm is derived from the fractional one (Cost
    2023, 4.4).
    """

    gamma: Annotated[float, Ge(0), Le(1)]
    """Weight of the dual values of the fractional partition."""
    reward: Annotated[float, Gt(0)]
    """lambda: reward of each member of a cluster, so that clusters grow."""


@dataclass(frozen=True)
class ChiExactParameters(Parameters):
    """Parameters of Chi-ex (Cost 2023, 5.6)."""

    nodes: Annotated[int, Ge(0)] | None = None
    """Maximum number of branch-and-bound nodes. Default: 2,000 (at most minutes for 200 records), or 20 for a
    block if effort is below exact."""
    deviation_weight: Annotated[float, Ge(0)] = 0.0
    """w of (5.6.1): cost of each record by which the count of a key combination changes, in units of
    chi-square. It represents the errors of tables that are not controlled."""


@dataclass(frozen=True)
class SearchParameters(Parameters):
    """Terms that the local search adds to chi-square in its objective, and hard limits.

    The defaults are those of files with more than `PROVABLE` key combinations. Up to that number, where
    Chi-ex can prove an optimum, the objective of every effort is chi-square alone (`CHI_SQUARE_ALONE`).

    Attributes
    ----------
    absolute_weight : mapping of dimension to float
        Cost of each record of absolute error beyond the tolerance, in units of chi-square.
    absolute_tolerance : mapping of dimension to float
        Absolute error of a cell up to which only chi-square counts.
    table_weight : mapping of a table's names, or a level of regions, to float
        Factor of the chi-square of that table, or of all tables by that level.
    region_weight : float
        Factor for tables by region that are not named. On a town of 100,000 in 400 regions, effort standard,
        0.3 leaves 5.7 % of the chi-square of region x 1 variable that is there without such tables, at 1.35
        times that of the whole file; 0.2 6.0 % at 1.21 times, and at effort fast more of both.
    deviation_weight : float
        Weight of chi-square of the table of all variables, which represents the tables that are not
        controlled. It is multiplied by the square root of the free bound of the controlled tables
        (`bounds.free_bound`, times their weights) over that of the table of all variables: where nearly
        every combination has less than k records, few tables would have to pay for very many changes.
        At 0.21 full Adult, tables to dimension 3, stays below 0.9 times SAFE's chi-square over all tables.
    max_deviation : int or None
        Largest change of a combination, at least k - 1; it yields only where the number of records
        could not be kept.
    """

    absolute_weight: ByDimension = field(default_factory=lambda: {1: 0.05, 2: 0.02, 3: 0.01})
    absolute_tolerance: ByDimension = field(default_factory=lambda: {1: 10.0})
    table_weight: Mapping[Hashable, float] = field(default_factory=dict)
    region_weight: Annotated[float, Ge(0)] = 0.3
    deviation_weight: Annotated[float, Ge(0)] = 0.21
    max_deviation: Annotated[int, Ge(1)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("absolute_weight", "absolute_tolerance"):
            check_by_dimension(name, getattr(self, name))
        if not all(weight >= 0 for weight in self.table_weight.values()):
            raise InvalidParameter(
                "weight of a control table: expected a number of at least 0, found a negative one"
            )


def check_by_dimension(name: str, values: Mapping[Any, Any]) -> None:
    """Refuse bounds or weights that are not keyed by table dimension, or negative.

    Raises
    ------
    InvalidParameter
    """
    for dimension, value in values.items():
        if isinstance(dimension, bool) or not isinstance(dimension, Integral) or dimension < 1:
            raise InvalidParameter(
                f"{name}: expected keys that are table dimensions (1, 2, ...), found {dimension!r}"
            )
        if isinstance(value, bool) or not isinstance(value, Real) or not float(value) >= 0:
            raise InvalidParameter(f"{name} of dimension {dimension}: expected a number of at least 0")


#: Maximum number of key combinations for which every effort minimises chi-square alone, and effort "exact"
#: uses the solver.
PROVABLE = 1_000
#: Chi-square over the cells of all control tables, including the tables by region, without further terms.
CHI_SQUARE_ALONE = SearchParameters(absolute_weight={}, region_weight=1.0, deviation_weight=0.0)


@dataclass(frozen=True)
class FrequencyAlgorithm(Algorithm):
    """Variables and efforts supported by an algorithm that protects frequencies of key combinations.

    Attributes
    ----------
    steered : bool
        Whether the algorithm supports bounds on errors, cells that must keep their count, and structural
        zeros.
    whole_file : bool
        Whether the algorithm processes the key combinations of a whole file at once. Other algorithms solve
        linear or integer programs and process some hundred records at a time.
    """

    steered: bool = False
    whole_file: bool = False


FREQUENCY: dict[str, FrequencyAlgorithm] = {
    **dict.fromkeys(
        TWO_STEP, FrequencyAlgorithm("nominal.two_step:two_step", EFFORTS, Guidance, max_records=PROGRAMS)
    ),
    TWO_OPTIMAL: FrequencyAlgorithm("nominal.two_step:two_step", EFFORTS, max_records=PROGRAMS),
    RANDOM: FrequencyAlgorithm("nominal.two_step:two_step", UNPROVED, max_records=PROGRAMS),
    CHI_EXACT: FrequencyAlgorithm(
        "nominal.chi_exact:solve_task", EFFORTS, ChiExactParameters, max_records=PROGRAMS
    ),
    LOCAL_SEARCH: FrequencyAlgorithm(
        "nominal.frequency_search.search:solve_task", EFFORTS, SearchParameters, steered=True, whole_file=True
    ),
}
