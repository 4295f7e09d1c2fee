"""What every nominal method answers: protected counts, and what each of its steps has proved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol, cast

import numpy as np
from microguard.sdc.errors import InvalidParameter
from microguard.sdc.stop import StoppedBy

#: What a step minimises: the weight of a partition, chi-square (with changes of combinations), or the largest
#: error of a cell.
Objective = Literal["weight", "chi-square", "chi-square and deviations", "largest error"]
#: Objective within which two solutions are the same: the solver's own tolerance.
OBJECTIVE_TOLERANCE = 1e-6
#: Why a step has no bound.
Unproved = Literal["heuristic", "work", "time"]


class Solution(Protocol):
    """What every step's answer says was proved."""

    @property
    def lower_bound(self) -> float | None:
        """Bound on the step's objective, if any."""

    @property
    def optimal(self) -> bool:
        """Whether the step's objective is proved least."""

    @property
    def stopped_by(self) -> StoppedBy:
        """What ended the step."""


@dataclass(frozen=True)
class Certificate:
    """The objective of one step beside the bound that was proved for it.

    Attributes
    ----------
    step : what was solved: "partition", "aggregation", "chi-exact", a name of SAFE's programs, or "whole",
        the protection as a whole, whose bound is that of `nested_bound` where no program's is above it
    objective : name of what the step minimises
    value : objective of the answer
    lower_bound : bound on the objective of every answer to the step, given the steps before it; None
        where none was proved
    optimal : whether value is proved least
    unproved : why there is no bound: "heuristic", or the limit that ended the proof, "work" or "time"; None
        where there is one
    """

    step: str
    objective: Objective
    value: float
    lower_bound: float | None
    optimal: bool
    unproved: Unproved | None = None

    def __post_init__(self) -> None:
        if (self.lower_bound is None) != (self.unproved is not None):
            raise InvalidParameter("a certificate has a bound, or says why it has none")

    @classmethod
    def of(
        cls,
        step: str,
        objective: Objective,
        value: float,
        solution: Solution,
        *,
        heuristic: bool = False,
    ) -> Certificate:
        """Certificate of what a step answered; `heuristic` where it was not to prove anything."""
        bound, unproved = solution.lower_bound, None
        if bound is None:
            unproved = "heuristic" if heuristic else "time" if solution.stopped_by == "time" else "work"
        return cls(step, objective, value, bound, solution.optimal, cast(Unproved | None, unproved))

    @property
    def gap(self) -> float | None:
        """(value - lower_bound) / value; None without a bound."""
        if self.lower_bound is None:
            return None
        return 0.0 if self.value == 0 else max(0.0, (self.value - self.lower_bound) / abs(self.value))


@dataclass(frozen=True)
class ProtectedCounts:
    """A protected frequency vector.

    Attributes
    ----------
    counts : (m,) int64 array
        0 or at least k each.
    stopped_by : "proof", "work" or "time"
    lower_bound : float or None
        Valid bound on the chi-square of every such vector; None where none was proved.
    optimal : bool
        Whether the chi-square is proved least.
    certificates : tuple of Certificate
        One a step that solves a problem of its own.
    work : dict
        What was spent, by its name.
    """

    counts: np.ndarray
    stopped_by: StoppedBy
    lower_bound: float | None = None
    optimal: bool = False
    certificates: tuple[Certificate, ...] = ()
    work: dict[str, int] = field(default_factory=dict)
