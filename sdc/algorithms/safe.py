"""Algorithms of `sdc.safe`.

Their rows are like those of `sdc.algorithms.nominal`. They keep the number of records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le, Lt
from microguard.sdc.algorithms.algorithm import EFFORTS, PROGRAMS, UNPROVED
from microguard.sdc.algorithms.nominal import FrequencyAlgorithm
from microguard.sdc.algorithms.parameters import Parameters
from microguard.sdc.errors import InvalidParameter

Whole = Annotated[int, Ge(0), Le(10**10)]
Positive = Annotated[int, Ge(1), Le(10**10)]
#: Appendix A: cells below 10 may have no extra error, cells below 20 an extra error of 1, ..., cells of
#: 1,000,000 and more an extra error of 9.
_EXTRA_ERROR_FROM = (10, 20, 50, 100, 200, 1_000, 10_000, 100_000, 1_000_000)


@dataclass(frozen=True)
class SafeParams(Parameters):
    """Parameters of SAFE (Cost 2023, Appendix A); the defaults are the German census's."""

    allowed_bound_one_dimension: Whole = 2
    """Bound on the absolute error of a cell of one variable at the start of the elimination."""
    allowed_bound_higher_dimension: Whole = 3
    """The same of more variables."""
    max_gap_between_bounds: Whole = 3
    """Maximum difference between the two bounds when they are raised."""
    allowed_deviation: Annotated[int, Ge(2), Le(10**10)] = 3
    """Maximum change of the count of a key combination at k = 3. For another k, k - 3 is added, because the
    count must be able to reach both 0 and k."""
    first_part: Positive = 5000
    """Number of key combinations in the first part of the vector."""
    part: Positive = 500
    """Number of key combinations in each part that is added to the vector."""
    slice: Annotated[int, Ge(2), Le(4)] = 3
    """Number of key combinations that Algorithms 2 and 4 change together."""
    stagnation: Annotated[float, Ge(0), Lt(1)] = 0.02
    """If a pass eliminates less than this share of the problems, the bounds are raised."""
    target_bound_one_dimension: Whole = 2
    """Target of the improvement (Algorithm 3): bound on the error of a cell of one variable."""
    target_bound_higher_dimension: Whole = 3
    """The same of more variables."""
    max_improvements: Whole = 20
    """Passes of the improvement."""
    extra_error_from: tuple[Whole, ...] = _EXTRA_ERROR_FROM
    """Ascending original counts. The allowed error of a cell increases by one for each of these counts that
    its original count reaches."""
    max_exceedings: Whole = 50
    """Number of cells that may exceed a lowered bound before bounds are no longer lowered. Appendix A gives
    none. On full Adult, 50 gives small maximum errors, and 10 slightly smaller ones."""
    max_total_exceedings: Whole = 5000
    """The same before the improvement ends."""
    max_nodes: Positive | None = None
    """Maximum number of branch-and-bound nodes of safe-exact and modified-safe-exact (default: no limit)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        counts = list(self.extra_error_from)
        if counts != sorted(set(counts)):
            raise InvalidParameter(
                "extra_error_from: expected counts that increase", variable="extra_error_from"
            )

    def conflict(self, algorithm: str, effort: str, nominal: bool) -> tuple[str, str] | None:
        """Refuse a node limit for SAFE itself, which solves no program."""
        programs = algorithm in ("safe-exact", "modified-safe-exact")
        if self.max_nodes is not None and not programs:
            return "max_nodes", "not applicable to SAFE itself, which solves no program"
        return None


SAFE: dict[str, FrequencyAlgorithm] = {
    "safe": FrequencyAlgorithm("safe.protection:solve_task", UNPROVED, SafeParams, whole_file=True),
    "safe-exact": FrequencyAlgorithm("safe.protection:solve_task", EFFORTS, SafeParams, max_records=PROGRAMS),
    "modified-safe-exact": FrequencyAlgorithm(
        "safe.protection:solve_task", EFFORTS, SafeParams, max_records=PROGRAMS
    ),
}
