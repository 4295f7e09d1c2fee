"""Parameters of single algorithms, a section each: `[method.NAME]`. What is left out is the source's."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from microguard.schemas.specification.section import Bound, Count, Number, Section, Share, Whole
from pydantic import Field


class Parameters(Section):
    """A section of one algorithm's parameters."""

    @property
    def given(self) -> dict[str, Any]:
        """The parameters as far as they are given."""
        return {name: getattr(self, name) for name in sorted(self.model_fields_set)}


class Vmdav(Parameters):
    """`[method.vmdav]`: how readily clusters grow (Solanas and Martinez-Balleste 2006)."""

    gain: Bound | None = None
    """gamma: a record joins whose distance to the cluster is below gamma times that to any other free record;
    the authors recommend 0.2 for scattered and 1.1 for clustered data (0.2)."""


class KWard(Parameters):
    """`[method.k_ward]`: what makes records the first and the last (Domingo-Ferrer and Mateo-Sanz 2002)."""

    ranking: Literal["maximum-distance", "fpc", "sz", "pv"] | None = None
    """Around the two most distant records (k-ward only, and its default), or along the first principal
    component (default of k-ward-projected), the sum of z-scores, or the variable that loses least; the last
    two take numeric variables only."""


class ColumnGeneration(Parameters):
    """`[method.column_generation]`: from fractions to clusters (Gentile et al. 2020, 5.2)."""

    rounding: Literal["both", "simple", "spanning-tree"] | None = None
    """Columns of largest value, edges of largest value, or the better of both (both)."""


class Genetic(Parameters):
    """`[method.genetic]`: the genetic algorithm of one variable (Domingo-Ferrer and Mateo-Sanz 2002, 4.3)."""

    convergence: Literal["average", "maximum"] | None = None
    """Which fitness has to converge: the average of the population or its largest (average)."""
    crossover: Share | None = None
    """Probability that a pair of strings crosses over (0.6)."""
    mutation: Share | None = None
    """Probability that a bit is inverted (0.05)."""
    generations: Annotated[int, Field(ge=0, le=100_000)] | None = None
    """Largest number of generations (200)."""
    population: Annotated[int, Field(ge=2, le=1_000, multiple_of=2)] | None = None
    """Strings, an even number (10)."""
    tolerance: Bound | None = None
    """Converged when the ratio of successive fitnesses is between 1 and 1 + tolerance / n (0.000001)."""


class TwoStep(Parameters):
    """`[method.two_step]`: how the integer partition of an own-... algorithm is guided (Cost 2023, 4.4)."""

    gamma: Share
    """Weight of the duals of the fractional partition."""
    reward: Annotated[Number, Field(gt=0)]
    """lambda: reward of each member of a cluster, so that clusters grow."""


class ChiExact(Parameters):
    """`[method.chi_exact]`: the second term of the objective of chi-exact (Cost 2023, (5.6.1))."""

    deviation_weight: Bound = 0.0
    """w: cost of each record by which a combination changes, in units of chi-square; it stands for the tables
    that are not controlled."""


class Safe(Parameters):
    """`[method.safe]`: parameters of SAFE (Cost 2023, Appendix A); those left out are the German census's."""

    allowed_bound_one_dimension: Whole | None = None
    """Bound on the absolute error of a cell of one variable with which the elimination starts (2)."""
    allowed_bound_higher_dimension: Whole | None = None
    """The same of more variables (3)."""
    max_gap_between_bounds: Whole | None = None
    """Largest difference between the two when they are raised (3)."""
    allowed_deviation: Annotated[Count, Field(ge=2)] | None = None
    """Largest change of a combination at k = 3; other k take k - 3 more (3)."""
    first_part: Annotated[Count, Field(ge=1)] | None = None
    """Combinations in the first part of the vector (5000)."""
    part: Annotated[Count, Field(ge=1)] | None = None
    """Combinations in each part added to it (500)."""
    slice: Annotated[int, Field(ge=2, le=4)] | None = None
    """Combinations that are changed together (3)."""
    stagnation: Annotated[Number, Field(ge=0, lt=1)] | None = None
    """Share of the problems below which a pass has eliminated too few (0.02)."""
    target_bound_one_dimension: Whole | None = None
    """Bound on the error of a cell of one variable that the improvement aims at (2)."""
    target_bound_higher_dimension: Whole | None = None
    """The same of more variables (3)."""
    max_improvements: Whole | None = None
    """Passes of the improvement (20)."""
    extra_error_from: Annotated[tuple[Whole, ...], Field(strict=False)] | None = None
    """Increasing original counts; a cell may err by one more for each that it reaches (10, 20, 50, 100, 200,
    1000, ... 1000000)."""
    max_exceedings: Whole | None = None
    """Cells that a lowered bound may leave above it before bounds stop falling (50)."""
    max_total_exceedings: Whole | None = None
    """The same before the improvement ends (5000)."""
    max_nodes: Annotated[Count, Field(ge=1)] | None = None
    """Branch-and-bound nodes of safe-exact and modified-safe-exact (no limit)."""
