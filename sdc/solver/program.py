"""Data types of the solver: program, limits, status, solution."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import highspy
import numpy as np
from microguard.sdc.errors import ShapeMismatch
from scipy import sparse

INFINITY = highspy.kHighsInf
#: Maximum iteration limit that HiGHS accepts.
NO_LIMIT = 2**31 - 1
#: Primal and dual feasibility tolerance of HiGHS; bounds are valid up to this relative error.
FEASIBILITY_TOLERANCE = 1e-7

Options = dict[str, bool | int | float | str]


class Status(Enum):
    """Status of a finished solve."""

    OPTIMAL = "optimal"  # values are optimal within the gap limits
    FEASIBLE = "feasible"  # a limit was reached; values are feasible
    UNKNOWN = "unknown"  # a limit was reached; there are no values
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    FAILED = "failed"


@dataclass(frozen=True)
class Program:
    """Minimise costs @ x subject to row_lower <= matrix @ x <= row_upper, lower <= x <= upper.

    Attributes
    ----------
    costs, lower, upper : (columns,) arrays
    matrix : sparse (rows, columns)
    row_lower, row_upper : (rows,) arrays; `INFINITY` for none
    integer : (columns,) boolean array, or None for a linear program
    offset : constant added to the objective
    """

    costs: np.ndarray
    matrix: sparse.spmatrix
    row_lower: np.ndarray
    row_upper: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    integer: np.ndarray | None = None
    offset: float = 0.0

    def __post_init__(self) -> None:
        rows, columns = self.matrix.shape
        for name, expected in (
            ("costs", columns),
            ("lower", columns),
            ("upper", columns),
            ("row_lower", rows),
            ("row_upper", rows),
        ):
            if len(getattr(self, name)) != expected:
                raise ShapeMismatch(f"{name}: found length {len(getattr(self, name))}, expected {expected}")
        if self.integer is not None and len(self.integer) != columns:
            raise ShapeMismatch(f"integer: found length {len(self.integer)}, expected {columns}")


@dataclass(frozen=True)
class Limits:
    """Work limits of a solve. If it stops at the limit of seconds, its result is not deterministic.

    Attributes
    ----------
    nodes : int, maximum number of branch-and-bound nodes
    steps : int, maximum number of calls of the interrupt callback by branch and bound
        A node makes a few calls, and so does a round of cuts at the root. Large programs spend most of their
        work at the root, where a limit of nodes has no effect.
    seconds, relative_gap, absolute_gap : float
    options : further options of HiGHS
    """

    nodes: int | None = None
    steps: int | None = None
    seconds: float = float("inf")
    relative_gap: float = 0.0
    absolute_gap: float = 1e-9
    options: Options = field(default_factory=dict)


@dataclass(frozen=True)
class Solution:
    """Result of a solve.

    Attributes
    ----------
    status : Status
    values : (columns,) array, or None if no feasible point was found
    objective : objective at `values`, or None
    bound : proved lower bound on the objective; minus infinity if there is none
    row_duals, reduced_costs : arrays if a linear program was solved to optimality, otherwise None
    nodes : branch-and-bound nodes; 0 for a linear program
    iterations : simplex iterations
    timed_out : whether the limit of seconds was reached
    attempts : number of algorithms tried
    """

    status: Status
    values: np.ndarray | None
    objective: float | None
    bound: float
    row_duals: np.ndarray | None
    reduced_costs: np.ndarray | None
    nodes: int
    iterations: int
    timed_out: bool
    attempts: int = 1
