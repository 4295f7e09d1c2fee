"""What is solved, with what limits, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import highspy
import numpy as np
from microguard.sdc.errors import ShapeMismatch
from scipy import sparse

INFINITY = highspy.kHighsInf
#: Of iterations: the largest number HiGHS takes.
NO_LIMIT = 2**31 - 1
#: HiGHS's own primal and dual feasibility tolerance; bounds are read as valid up to this much.
FEASIBILITY_TOLERANCE = 1e-7

Options = dict[str, bool | int | float | str]


class Status(Enum):
    """What was proved about the problem."""

    OPTIMAL = "optimal"  # values are optimal within the gap asked for
    FEASIBLE = "feasible"  # a limit was hit, values are feasible
    UNKNOWN = "unknown"  # a limit was hit, there are no values
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
                raise ShapeMismatch(f"{name} has length {len(getattr(self, name))}, expected {expected}")
        if self.integer is not None and len(self.integer) != columns:
            raise ShapeMismatch(f"integer has length {len(self.integer)}, expected {columns}")


@dataclass(frozen=True)
class Limits:
    """Work a solve may do; seconds are a safety net that voids determinism when hit.

    Attributes
    ----------
    nodes : of branch and bound
    steps : looks of branch and bound at its limits
        A node takes a few. So does a round of cuts at the root, before there is any node, where large
        programs spend most of their work.
    seconds, relative_gap, absolute_gap : as named
    options : further ones of HiGHS
    """

    nodes: int | None = None
    steps: int | None = None
    seconds: float = float("inf")
    relative_gap: float = 0.0
    absolute_gap: float = 1e-9
    options: Options = field(default_factory=dict)


@dataclass(frozen=True)
class Solution:
    """What the solver found and proved.

    Attributes
    ----------
    status : Status
    values : (columns,) array, or None where there is no feasible point
    objective : objective at `values`, or None
    bound : proved lower bound on the objective (minus infinity where there is none)
    row_duals, reduced_costs : of a linear program solved to optimality, else None
    nodes : branch-and-bound nodes (0 for a linear program)
    iterations : simplex iterations
    timed_out : whether the wall clock ended it
    ray : (rows,) dual ray proving infeasibility of a linear program, where the solver gave one
    attempts : algorithms tried until one of them ended in an answer
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
    ray: np.ndarray | None = None
    attempts: int = 1
