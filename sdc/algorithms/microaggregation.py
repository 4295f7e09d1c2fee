"""Algorithms of `sdc.microaggregation`: partition records into clusters of at least k.

The function of a row is

    solve(records: Records, k: int, *, deadline: Deadline, seed: int, **keywords) -> Clustering

- ``records`` are validated, encoded and in canonical order (`Records.of`). The cost is the squared Euclidean
  distance of ``records.values`` (n, p), weighted by ``records.weights`` (n,). ``2 <= k <= n`` holds.
- The result is ``Clustering.of(records, labels, NAME, lower_bound=..., bound_kind=..., stopped_by=...,
  work={...})``. Labels may be any integers; every cluster has at least k records. ``lower_bound`` is in units
  of the SSE, or None if nothing was proved.
- ``deadline`` is a safety net: check ``deadline.passed`` between units of work. If it is true, return the
  best solution found so far with ``stopped_by="time"``. All other stopping criteria count work.
  ``stopped_by="proof"`` means that the cost of the solution equals the lower bound.
- ``seed``, a non-negative int, is the only source of randomness.
- ``parameters``, of the type in the row, is passed if the caller gave it. ``effort`` and ``share_of_run`` are
  passed if the row is ``by_effort``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le, MultipleOf
from microguard.sdc.algorithms.algorithm import CONSTRUCTION, EFFORTS, PROGRAMS, SQUARE, Algorithm, loaded
from microguard.sdc.algorithms.parameters import Parameters, Variables

#: Maximum number of records of column generation, which stores the squared distances of all pairs in 8 n^2
#: bytes (200 MB for this number).
MOST_PAIRED_RECORDS = 5_000


@dataclass(frozen=True)
class VmdavParameters(Parameters):
    """Parameters of V-MDAV (Solanas and Martinez-Balleste 2006)."""

    gain: Annotated[float, Ge(0)] = 0.2
    """gamma: a free record joins the cluster if its distance to the cluster is below gamma times its distance
    to the nearest other free record. With 0, clusters have the fixed size of MDAV; the authors recommend 0.2
    for scattered and 1.1 for clustered data."""


@dataclass(frozen=True)
class _OfVariable(Parameters):
    """Parameters that may name a numeric variable."""

    variable: str | None = field(default=None, kw_only=True)

    def among(self, variables: Collection[str]) -> Parameters:
        """Remove a variable that the records do not have from the parameters."""
        return self if self.variable in variables else replace(self, variable=None)

    def unfit(self, variables: Variables) -> Iterator[tuple[str, object, str]]:
        """Return the parameter that names a variable which is not numeric or not clustered, and the allowed
        values.
        """
        numeric = [name for name, kind in variables.kinds.items() if kind == "numeric"]
        if self.variable is not None and self.variable not in numeric:
            yield "variable", self.variable, f"a numeric quasi-identifier: {', '.join(numeric) or 'none'}"


@dataclass(frozen=True)
class ProjectionParameters(_OfVariable):
    """Parameters of projection on one variable (Domingo-Ferrer and Mateo-Sanz 2002, PF(PV) of Table 3)."""

    variable: str | None = field(default=None, kw_only=True)
    """Numeric variable by which records are ranked; by default the one with the least information loss.
    Blocks in which this variable is missing use the default. In Python, a column of the DataFrame."""


@dataclass(frozen=True)
class KWardParameters(_OfVariable):
    """Parameters of k-Ward (Domingo-Ferrer and Mateo-Sanz 2002)."""

    ranking: Literal["maximum-distance", "md", "fpc", "sz", "pv"] | None = None
    """Criterion that selects the first and the last record. "maximum-distance" (or the paper's "md") uses the
    two most distant records; only k-ward supports it, as its default. The others use the order along the
    first principal component (default of k-ward-projected), the sum of z-scores, or one variable; the sum and
    the variable require numeric variables only."""
    variable: str | None = field(default=None, kw_only=True)
    """Numeric variable of ranking "pv", as in `projection`; by default the one with the least information
    loss."""

    def conflict(self, algorithm: str, effort: str, nominal: bool) -> tuple[str, str] | None:
        """Return a conflict if the ranking does not fit the algorithm or its variables, or requires a
        variable that is not named.
        """
        if self.ranking in ("maximum-distance", "md") and algorithm == "k-ward-projected":
            return "ranking", "fpc, sz, pv with algorithm k-ward-projected"
        if self.ranking in ("sz", "pv") and nominal:
            return (
                "ranking",
                "maximum-distance or fpc with nominal variables, because sz and pv support numeric "
                "variables only",
            )
        if self.variable is not None and self.ranking != "pv":
            return "variable", 'not applicable unless ranking = "pv"'
        return None


@dataclass(frozen=True)
class GeneticParams(Parameters):
    """Parameters of the genetic algorithm of one variable (Domingo-Ferrer and Mateo-Sanz 2002, 4.3)."""

    convergence: Literal["average", "maximum"] = "average"
    """Fitness that must converge: the average of the population (method A) or its largest value (method M).
    """
    crossover: Annotated[float, Ge(0), Le(1)] = 0.6
    """Probability that a pair of strings crosses over, PCROSS."""
    mutation: Annotated[float, Ge(0), Le(1)] = 0.05
    """Probability that a bit is inverted, PMUT."""
    generations: Annotated[int, Ge(0), Le(100_000)] = 200
    """Largest number of generations, MAXGEN."""
    population: Annotated[int, Ge(2), Le(1_000), MultipleOf(2)] = 10
    """Number of strings."""
    tolerance: Annotated[float, Ge(0)] = 1e-6
    """Converged if the ratio of successive fitnesses is between 1 and 1 + tolerance / n."""


@dataclass(frozen=True)
class ColumnGenerationParameters(Parameters):
    """Parameters of column generation (Gentile et al. 2020, 5.2)."""

    rounding: Literal["both", "simple", "spanning-tree"] = "both"
    """How fractional columns are converted to clusters: columns of largest value, edges of largest value, or
    the better of both."""
    pricing: Literal[
        "branch-and-bound", "table-2", "enumeration", "edge-model", "edge-model-with-triangles"
    ] = "branch-and-bound"
    """Pricing method, which finds clusters of least reduced cost. Choices: branch and bound over members;
    enumeration or the edge model as in Table 2 of the paper; always the complete enumeration of 4.1; always
    the edge model (11) to (14) of 4.2, with or without the triangle inequalities. All methods find the same
    bound. The edge model and enumeration are limited to blocks of few records; larger blocks take hours."""

    def conflict(self, algorithm: str, effort: str, nominal: bool) -> tuple[str, str] | None:
        """Return a conflict if effort "exact" is combined with parameters, because that effort solves another
        program without parameters.
        """
        if effort != "exact":
            return None
        key = "rounding" if self.rounding != "both" else "pricing"
        return key, "not applicable with effort exact, which has a program of its own"


@dataclass(frozen=True)
class ClusteringAlgorithm(Algorithm):
    """Variables and efforts that an algorithm for records supports.

    Attributes
    ----------
    proof : str
        Code of the program for effort "exact", if it differs from ``code``. That program takes no parameters.
    most_records : int or None
        Largest supported number of records; the caller splits larger files into blocks.
    diverse : bool
        Whether the algorithm uses the diversity requirements of the records.
    by_effort : bool
        Whether the work of the algorithm depends on the effort and on the block's share of the run.
    """

    proof: str = ""
    most_records: int | None = None
    diverse: bool = False
    by_effort: bool = False

    def solver(self, effort: str) -> Callable[..., Any]:
        """Load the function for this effort."""
        return loaded(self.proof) if effort == "exact" and self.proof else self.solve


MICROAGGREGATION: dict[str, ClusteringAlgorithm] = {
    "mdav": ClusteringAlgorithm("microaggregation.heuristics.mdav:solve", CONSTRUCTION, max_records=SQUARE),
    "vmdav": ClusteringAlgorithm(
        "microaggregation.heuristics.vmdav:solve", CONSTRUCTION, VmdavParameters, max_records=SQUARE
    ),
    "univariate-optimal": ClusteringAlgorithm(
        "microaggregation.heuristics.optimal_univariate:solve",
        EFFORTS,
        nominal=False,
        one_variable=True,
        record_weights=False,
    ),
    "genetic": ClusteringAlgorithm(
        "microaggregation.heuristics.genetic:solve",
        CONSTRUCTION,
        GeneticParams,
        nominal=False,
        one_variable=True,
        record_weights=False,
    ),
    "mdav-in-blocks": ClusteringAlgorithm("microaggregation.local_search.by_effort:construct", CONSTRUCTION),
    "local-search": ClusteringAlgorithm(
        "microaggregation.effort_ladder:solve",
        ("fast", "standard", "thorough"),
        diverse=True,
        by_effort=True,
    ),
    "maximum-distance": ClusteringAlgorithm(
        "microaggregation.heuristics.maximum_distance:solve", CONSTRUCTION, max_records=SQUARE
    ),
    "projection-pv": ClusteringAlgorithm(
        "microaggregation.heuristics.projections:solve_variable",
        CONSTRUCTION,
        ProjectionParameters,
        nominal=False,
    ),
    "projection-sz": ClusteringAlgorithm(
        "microaggregation.heuristics.projections:solve_z_scores", CONSTRUCTION, nominal=False
    ),
    "projection-fpc": ClusteringAlgorithm(
        "microaggregation.heuristics.projections:solve_first_component", CONSTRUCTION
    ),
    "k-ward": ClusteringAlgorithm(
        "microaggregation.heuristics.k_ward:solve", CONSTRUCTION, KWardParameters, max_records=SQUARE
    ),
    "k-ward-projected": ClusteringAlgorithm(
        "microaggregation.heuristics.k_ward:solve_projected", CONSTRUCTION, KWardParameters
    ),
    "column-generation": ClusteringAlgorithm(
        "microaggregation.column_generation.heuristic:solve",
        ("standard", "thorough", "exact"),
        ColumnGenerationParameters,
        record_weights=False,
        max_records=PROGRAMS,
        proof="microaggregation.certified.certify:solve",
        most_records=MOST_PAIRED_RECORDS,
    ),
}
