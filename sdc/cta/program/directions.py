"""Directions of the sensitive cells, drawn at random."""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.program.problem import Problem


def random_directions(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """Directions by a fair coin per cell, forced cells put right."""
    return problem.admissible(rng.integers(0, 2, problem.size, dtype=np.int8))
