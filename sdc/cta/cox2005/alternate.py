"""Ordering with alternate assignment: the plainest heuristic."""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.program.problem import Problem


def by_size(problem: Problem) -> np.ndarray:
    """(p,) positions of the sensitive cells from the largest to the smallest value, ties by position."""
    return np.argsort(-problem.table.values[problem.sensitive], kind="stable")


def alternate(problem: Problem) -> np.ndarray:
    """Directions up and down in turn, from the largest sensitive cell down (Cox 2005, section 3)."""
    directions = np.zeros(problem.size, dtype=np.int8)
    directions[by_size(problem)[::2]] = 1
    return problem.admissible(directions)
