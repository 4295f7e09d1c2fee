"""A program is solved. What ends in nothing is tried again by another algorithm, at last without presolve: a
program that can be solved never fails because one of them gave up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import highspy
import numpy as np
from microguard.sdc.solver.highs import INTEGER_ATTEMPTS, LINEAR_ATTEMPTS, new_highs, read_out, take_in
from microguard.sdc.solver.program import Limits, Program, Solution, Status


def solve(program: Program, limits: Limits | None = None, start: np.ndarray | None = None) -> Solution:
    """Solve a linear or mixed-integer program.

    Parameters
    ----------
    program : Program
    limits : Limits, optional
        Nodes, seconds, gaps and further HiGHS options.
    start : (columns,) array, optional
        A feasible point to start an integer program from.

    Raises
    ------
    SolverFailed
        Where the solver could not even take the problem in.
    """
    limits = limits or Limits()
    integer = program.integer is not None and bool(np.any(program.integer))
    spent, number = 0.0, 0
    while True:
        attempts = INTEGER_ATTEMPTS if integer else LINEAR_ATTEMPTS
        left = replace(limits, seconds=limits.seconds - spent, options=limits.options | attempts[number])
        highs = new_highs(left)
        take_in(highs, program)
        if limits.steps is not None and integer:
            highs.cbMipInterrupt.subscribe(_Steps(limits.steps))
        if start is not None and integer:
            point = highspy.HighsSolution()
            point.col_value = list(np.asarray(start, dtype=float))
            highs.setSolution(point)
        highs.run()
        spent += highs.getRunTime()
        number += 1
        solution = replace(read_out(highs, integer), attempts=number)
        if solution.status is not Status.FAILED or number == len(attempts) or spent >= limits.seconds:
            return solution


class _Steps:
    """Ends branch and bound when it has looked at its limits so many times."""

    def __init__(self, most: int) -> None:
        self._left = most

    def __call__(self, event: Any) -> None:
        self._left -= 1
        if self._left < 0:
            event.data_in.user_interrupt = True
