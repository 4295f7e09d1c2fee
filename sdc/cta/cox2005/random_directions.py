"""Best of random directions, the baseline of Cox 2005, section 3."""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.program.directions import random_directions
from microguard.sdc.cta.program.search import Search


def best_of_random(search: Search, repetitions: int, rng: np.random.Generator) -> None:
    """Evaluate random directions (Cox 2005, section 3: 100 and 1000); `search` keeps the best solution.

    Raises
    ------
    TimeUp
    """
    for _ in range(repetitions):
        search.evaluate(random_directions(search.problem, rng))
