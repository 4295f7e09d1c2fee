"""Best of random directions: the baseline of Cox 2005, section 3."""

from __future__ import annotations

import numpy as np

from sdc.cta.problem import Problem
from sdc.cta.search import Search


def random_directions(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """Directions by a fair coin per cell, forced cells put right."""
    return problem.admissible(rng.integers(0, 2, problem.size, dtype=np.int8))


def best_of_random(search: Search, repetitions: int, rng: np.random.Generator) -> None:
    """Ask for so many random directions (Cox 2005, section 3: 100 and 1000).

    Raises
    ------
    TimeUp
    """
    for _ in range(repetitions):
        search.ask(random_directions(search.problem, rng))
