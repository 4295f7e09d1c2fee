"""Call the kernels that `protect` uses by default for numeric and mixed records, so that they are compiled.

The process from which Spark forks its Python workers loads these kernels, so this module imports no other
method.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.microaggregation import microaggregate
from microguard.sdc.microaggregation.global_bound.bound import global_bound
from microguard.sdc.microaggregation.local_search.neighbours import EXACT_RECORDS, nearest_neighbours
from microguard.sdc.microaggregation.principal_cuts import CutTree
from microguard.sdc.risk.linkage import Points, nearer_and_tied


def clusters() -> None:
    """Compile the clustering kernels that `protect` uses by default for numeric and mixed records."""
    random = np.random.default_rng(0)
    points, keys = random.normal(size=(12, 2)), np.arange(12)
    for effort in ("fast", "standard"):
        microaggregate(points, 3, effort=effort)
    nearest_neighbours(random.normal(size=(EXACT_RECORDS + 1, 1)), 2, trees=1, seed=0)
    CutTree.grow(points, keys, 2).assign(points, keys)
    global_bound(points, 3, reach=np.ones(12))
    link(points)


def link(numbers: np.ndarray) -> None:
    """Compile the kernel of record linkage for arrays of shape (n, p)."""
    n = len(numbers)
    records = Points(numbers, np.zeros((n, 1), np.int64), np.zeros(n, np.int64))
    nearer_and_tied(records, np.zeros(n), records)
