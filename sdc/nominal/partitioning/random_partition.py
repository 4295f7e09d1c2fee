"""A random partition, the baseline that ignores distances (Cost 2023, section 6.2.5)."""

from __future__ import annotations

import numpy as np
from microguard.sdc.nominal.partitioning.problem import NONE, PartitionProblem


def random_partition(problem: PartitionProblem, *, seed: int) -> np.ndarray:
    """Draw a random partition into clusters of k to 2k - 1 records; return its columns (clusters, 2k - 1).

    The thesis draws a list of sizes with sum n. Here sizes are drawn one by one, such that never 1 to k - 1
    records remain.
    """
    rng = np.random.default_rng(seed)
    k, n = problem.k, problem.records
    records = rng.permutation(np.repeat(np.arange(len(problem.multiplicity)), problem.multiplicity))
    rows = []
    start = 0
    while start < n:
        left = n - start
        allowed = [size for size in range(k, 2 * k) if left - size == 0 or left - size >= k]
        size = int(rng.choice(allowed))
        rows.append(np.r_[np.sort(records[start : start + size]), np.full(2 * k - 1 - size, NONE)])
        start += size
    return np.array(rows, dtype=np.int64)
