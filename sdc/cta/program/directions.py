"""Random directions of the sensitive cells."""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.program.problem import Problem


def random_directions(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """Draw each direction with probability 1/2; forced cells get their only direction, (p,) int8."""
    return problem.admissible(rng.integers(0, 2, problem.size, dtype=np.int8))
