"""The best directions met so far, every question asked of the linear program, and the work it took."""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.program.directed import Answer, DirectedProgram
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.stop import Deadline

#: Relative improvement below which two costs count as equal: what the solver leaves.
COST_TOLERANCE = 1e-9


class TimeUp(Exception):
    """The deadline passed; what was found stands in the `Search`."""


class Search:
    """Asks the program, keeps the best answer and counts.

    Attributes
    ----------
    problem : Problem
    deadline : Deadline
    best : Answer or None
        Cheapest answer so far, feasible ones before others.
    answers : list of Answer
        Every different answer in the order asked for; their gradients are valid cuts.
    history : list of (programs, scaled cost) at each improvement
    programs, moves : work counted
    work : float
        Of the programs, as `sdc.cta.program.work` counts it.
    """

    def __init__(self, problem: Problem, deadline: Deadline) -> None:
        self.problem = problem
        self.deadline = deadline
        self.best: Answer | None = None
        self.answers: list[Answer] = []
        self.history: list[tuple[int, float]] = []
        self.programs = 0
        self.moves = 0
        self.work = 0.0
        self._program = DirectedProgram(problem)
        self._known: dict[bytes, Answer] = {}

    def ask(self, directions: np.ndarray, overtime: bool = False, one_of_many: bool = False) -> Answer:
        """Cost of directions; a repeated question costs nothing.

        Parameters
        ----------
        overtime : bool
            Answer even after the deadline: for the one question that turns work done into a solution.
        one_of_many : bool
            Whether questions near this one follow.

        Raises
        ------
        TimeUp
        """
        chosen = self.problem.admissible(directions)
        key = np.packbits(chosen).tobytes()
        if key in self._known:
            return self._known[key]
        if not overtime:
            self.check_time()
        seconds = np.inf if overtime else self.deadline.remaining
        answer = self._program.ask(chosen, seconds, one_of_many)
        if answer is None:
            raise TimeUp
        self.programs += 1
        self.work += answer.work
        self._known[key] = answer
        self.answers.append(answer)
        if self.best is None or _better(answer, self.best):
            self.best = answer
            if answer.feasible:
                self.history.append((self.programs, answer.cost))
        return answer

    def check_time(self) -> None:
        """Raise `TimeUp` where the deadline has passed."""
        if self.deadline.passed:
            raise TimeUp

    def count_programs(self, programs: int, work: float) -> None:
        """Count programs of parts, which were not asked through here."""
        self.programs += programs
        self.work += work

    def count_moves(self, moves: int) -> None:
        """Count proposals of an annealing run."""
        self.moves += moves


def _better(answer: Answer, best: Answer) -> bool:
    if answer.feasible != best.feasible:
        return answer.feasible
    return answer.cost < best.cost * (1 - COST_TOLERANCE)
