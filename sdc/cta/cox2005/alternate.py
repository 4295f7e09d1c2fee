"""Alternating directions over the sensitive cells in descending order of value, the simplest heuristic of Cox
2005.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.program.problem import Problem


def by_size(problem: Problem) -> np.ndarray:
    """Return the positions (p,) of the sensitive cells in descending order of value, ties by position."""
    return np.argsort(-problem.table.values[problem.sensitive], kind="stable")


def alternate(problem: Problem) -> np.ndarray:
    """Alternate the directions up and down over the sensitive cells in descending order of value.

    Source: Cox 2005, section 3.
    """
    directions = np.zeros(problem.size, dtype=np.int8)
    directions[by_size(problem)[::2]] = 1
    return problem.admissible(directions)
