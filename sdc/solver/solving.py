"""Solve a linear or mixed-integer program.

If one algorithm fails, try others, and finally solve without presolve.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import highspy
import numpy as np
from microguard.sdc.solver.highs import (
    INTEGER_ATTEMPTS,
    LINEAR_ATTEMPTS,
    new_highs,
    pass_program,
    read_solution,
)
from microguard.sdc.solver.program import Limits, Program, Solution, Status


def solve(program: Program, limits: Limits | None = None, start: np.ndarray | None = None) -> Solution:
    """Solve a linear or mixed-integer program.

    Parameters
    ----------
    program : Program
    limits : Limits, optional
        Limits on nodes and seconds, gaps, and further HiGHS options.
    start : (columns,) array, optional
        A feasible start solution of an integer program.

    Raises
    ------
    SolverFailed
        If the solver rejects the program. A failure of all algorithms is `Status.FAILED` instead.
    """
    limits = limits or Limits()
    integer = program.integer is not None and bool(np.any(program.integer))
    spent, number = 0.0, 0
    while True:
        attempts = INTEGER_ATTEMPTS if integer else LINEAR_ATTEMPTS
        left = replace(limits, seconds=limits.seconds - spent, options=limits.options | attempts[number])
        highs = new_highs(left)
        pass_program(highs, program)
        if limits.steps is not None and integer:
            highs.cbMipInterrupt.subscribe(_Steps(limits.steps))
        if start is not None and integer:
            point = highspy.HighsSolution()
            point.col_value = list(np.asarray(start, dtype=float))
            highs.setSolution(point)
        highs.run()
        spent += highs.getRunTime()
        number += 1
        solution = replace(read_solution(highs, integer), attempts=number)
        if solution.status is not Status.FAILED or number == len(attempts) or spent >= limits.seconds:
            return solution


class _Steps:
    """Interrupt of branch and bound after a number of calls of HiGHS's interrupt callback."""

    def __init__(self, limit: int) -> None:
        self._left = limit

    def __call__(self, event: Any) -> None:
        self._left -= 1
        if self._left < 0:
            event.data_in.user_interrupt = True
