"""Compile every kernel ahead: ``python -m sdc.warm`` once per machine or image, before the first run.

Each public function runs on instances so small that only the compiler takes time. What it compiles is
kept where `sdc.kernels` says.
"""

from __future__ import annotations

import numpy as np

from sdc.diversity import diversify
from sdc.microaggregation import individual_ranking, microaggregate
from sdc.microaggregation.algorithms import ALGORITHMS
from sdc.microaggregation.neighbours import EXACT_RECORDS, nearest_neighbours
from sdc.microaggregation.principal_cuts import CutTree


def warm() -> None:
    """Call everything that has kernels, with the types it is used with."""
    random = np.random.default_rng(0)
    points = random.normal(size=(12, 2))
    for name, algorithm in ALGORITHMS.items():
        variables = 1 if name == "univariate-optimal" else 2
        effort = "standard" if "standard" in algorithm.efforts else algorithm.efforts[-1]
        microaggregate(points[:, :variables], 3, algorithm=name, effort=effort)
    for method in ("optimal", "fixed-size", "k-ward", "genetic-average"):
        individual_ranking(points, 3, algorithm=method)
    nearest_neighbours(random.normal(size=(EXACT_RECORDS + 1, 1)), 2, trees=1, seed=0)
    keys = np.arange(12)
    CutTree.grow(points, keys, 2).assign(points, keys)
    diversify(points, keys // 3, keys[:, np.newaxis] % 3, 2)


if __name__ == "__main__":
    warm()
