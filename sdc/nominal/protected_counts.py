"""Result of every nominal method: the protected counts, and a certificate for each optimisation step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol, cast

import numpy as np
from microguard.sdc.errors import InvalidParameter
from microguard.sdc.stop import StoppedBy

#: Objectives of steps: weight of a partition, chi-square (without or with deviations of key combinations),
#: and the largest excess of a cell's error over the extra error that SAFE allows (max |b_t| - g_t).
Objective = Literal["weight", "chi-square", "chi-square and deviations", "largest error above its allowance"]
#: Tolerance of the solver: objectives whose difference is smaller count as equal.
OBJECTIVE_TOLERANCE = 1e-6
#: Reason given for a step without a lower bound.
Unproved = Literal["heuristic", "work", "time"]


class Solution(Protocol):
    """Interface of the result of an optimisation step."""

    @property
    def lower_bound(self) -> float | None:
        """Return the proved lower bound on the step's objective; None if there is none."""

    @property
    def optimal(self) -> bool:
        """Return whether the step's objective was proved minimal."""

    @property
    def stopped_by(self) -> StoppedBy:
        """Return why the step stopped: "proof", "work" or "time"."""


@dataclass(frozen=True)
class Certificate:
    """Objective value of one step, and the lower bound proved for it.

    Attributes
    ----------
    step : str
        "partition", "aggregation", "chi-exact", the name of an exact SAFE problem, or "whole" for the entire
        protection. The bound of "whole" is at least `nested_bound`.
    objective : str
        Objective that the step minimises.
    value : float
        Objective value of the result.
    lower_bound : float or None
        Bound on the objective of every result of the step, given the results of earlier steps.
    optimal : bool
        Whether the value is proved minimal.
    unproved : str or None
        Reason why there is no bound: "heuristic", or the limit that ended the proof, "work" or "time".
    """

    step: str
    objective: Objective
    value: float
    lower_bound: float | None
    optimal: bool
    unproved: Unproved | None = None

    def __post_init__(self) -> None:
        if (self.lower_bound is None) != (self.unproved is not None):
            raise InvalidParameter(
                "certificate: expected either a lower bound or a reason for its absence, found both or "
                "neither"
            )

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
        """Build the certificate from a step's result; set `heuristic` if the step computes no lower bound."""
        bound, unproved = solution.lower_bound, None
        if bound is None:
            unproved = "heuristic" if heuristic else "time" if solution.stopped_by == "time" else "work"
        return cls(step, objective, value, bound, solution.optimal, cast(Unproved | None, unproved))

    @property
    def gap(self) -> float | None:
        """Return (value - lower_bound) / value; None without a lower bound."""
        if self.lower_bound is None:
            return None
        return 0.0 if self.value == 0 else max(0.0, (self.value - self.lower_bound) / abs(self.value))


@dataclass(frozen=True)
class ProtectedCounts:
    """A protected frequency vector.

    Attributes
    ----------
    counts : (m,) int64 array
        Counts that are 0 or at least k.
    stopped_by : "proof", "work" or "time"
    lower_bound : float or None
        Valid bound on the chi-square of every such vector.
    optimal : bool
        Whether the chi-square is proved minimal.
    certificates : tuple of Certificate
        One for each step that solves an optimisation problem.
    work : dict of name to int
        Work that was done, such as the number of evaluated moves.
    """

    counts: np.ndarray
    stopped_by: StoppedBy
    lower_bound: float | None = None
    optimal: bool = False
    certificates: tuple[Certificate, ...] = ()
    work: dict[str, int] = field(default_factory=dict)
