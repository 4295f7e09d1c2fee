"""Classes of disjoint lines: the rows of a table, its columns, and so on, found from the relations alone."""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.program.problem import Problem
from scipy import sparse


def disjoint_classes(problem: Problem) -> np.ndarray:
    """Class of each line, (lines,), by first-fit colouring in order; -1 where it has no sensitive cell."""
    rows = sparse.csr_matrix(problem.lines)
    touched = np.unique(problem.incidence.indices)
    classes = np.full(rows.shape[0], -1, dtype=np.int64)
    met = np.zeros(rows.shape[1], dtype=np.int64)  # bit set of the classes a cell lies in
    for line in touched:
        cells = rows.indices[rows.indptr[line] : rows.indptr[line + 1]]
        taken = int(np.bitwise_or.reduce(met[cells]))
        colour = 0
        while taken >> colour & 1 and colour < 61:
            colour += 1
        classes[line] = colour
        met[cells] |= 1 << colour
    return classes
