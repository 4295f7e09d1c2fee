"""State of a search over directions: best solution, all evaluations, and the work done so far."""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.program.fixed_directions import Evaluation, FixedDirectionsProgram
from microguard.sdc.cta.program.problem import Problem
from microguard.sdc.stop import Deadline

#: Maximum relative difference of equal costs: the accuracy of the solver.
COST_TOLERANCE = 1e-9


class TimeUp(Exception):
    """Raised if the deadline has passed; the `Search` contains the best solution."""


class Search:
    """Search state that evaluates directions by linear programs, keeps the best solution and counts the work.

    Attributes
    ----------
    problem : Problem
    deadline : Deadline
    best : Evaluation or None
        Cheapest solution so far; feasible solutions are preferred to cheaper infeasible ones.
    evaluations : list of Evaluation
        All distinct evaluations in order; their gradients give valid cuts.
    history : list of (programs, scaled cost) at each improvement
    programs, moves : int
        Number of linear programs and of annealing moves.
    work : float
        Work of the programs, in the units of `sdc.cta.program.work`.
    """

    def __init__(self, problem: Problem, deadline: Deadline) -> None:
        self.problem = problem
        self.deadline = deadline
        self.best: Evaluation | None = None
        self.evaluations: list[Evaluation] = []
        self.history: list[tuple[int, float]] = []
        self.programs = 0
        self.moves = 0
        self.work = 0.0
        self._program = FixedDirectionsProgram(problem)
        self._known: dict[bytes, Evaluation] = {}

    def evaluate(
        self, directions: np.ndarray, ignore_deadline: bool = False, similar_follow: bool = False
    ) -> Evaluation:
        """Evaluate directions (p,) by a linear program, or return the stored result if they were evaluated
        before.

        Parameters
        ----------
        ignore_deadline : bool
            Whether to solve the program even after the deadline, so that work already done leads to a
            solution.
        similar_follow : bool
            Whether similar directions will be evaluated next.

        Raises
        ------
        TimeUp
            If the deadline has passed.
        """
        chosen = self.problem.admissible(directions)
        key = np.packbits(chosen).tobytes()
        if key in self._known:
            return self._known[key]
        if not ignore_deadline:
            self.check_time()
        seconds = np.inf if ignore_deadline else self.deadline.remaining
        evaluation = self._program.evaluate(chosen, seconds, similar_follow)
        if evaluation is None:
            raise TimeUp
        self.programs += 1
        self.work += evaluation.work
        self._known[key] = evaluation
        self.evaluations.append(evaluation)
        if self.best is None or _better(evaluation, self.best):
            self.best = evaluation
            if evaluation.feasible:
                self.history.append((self.programs, evaluation.cost))
        return evaluation

    def check_time(self) -> None:
        """Raise `TimeUp` if the deadline has passed."""
        if self.deadline.passed:
            raise TimeUp

    def count_programs(self, programs: int, work: float) -> None:
        """Add the linear programs of subproblems to the work."""
        self.programs += programs
        self.work += work

    def count_moves(self, moves: int) -> None:
        """Add the moves of an annealing run to the work."""
        self.moves += moves


def _better(evaluation: Evaluation, best: Evaluation) -> bool:
    if evaluation.feasible != best.feasible:
        return evaluation.feasible
    return evaluation.cost < best.cost * (1 - COST_TOLERANCE)
