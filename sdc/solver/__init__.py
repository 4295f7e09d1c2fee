"""Linear and integer programming with HiGHS; no other package calls the solver."""

from microguard.sdc.solver.master import Basis, Master
from microguard.sdc.solver.program import (
    FEASIBILITY_TOLERANCE,
    INFINITY,
    NO_LIMIT,
    Limits,
    Options,
    Program,
    Solution,
    Status,
)
from microguard.sdc.solver.solving import solve

__all__ = [
    "FEASIBILITY_TOLERANCE",
    "INFINITY",
    "NO_LIMIT",
    "Basis",
    "Limits",
    "Master",
    "Options",
    "Program",
    "Solution",
    "Status",
    "solve",
]
