"""Partition constraints into classes without common cells: for example, all rows of a table form a class, all
columns another.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.cta.program.problem import Problem
from scipy import sparse


def disjoint_classes(problem: Problem) -> np.ndarray:
    """Assign a class to each constraint, (constraints,), such that constraints of a class share no cell.

    Uses first-fit colouring in the order of the constraints. The class is -1 if a constraint has no sensitive
    cell.
    """
    rows = sparse.csr_matrix(problem.constraints)
    touched = np.unique(problem.incidence.indices)
    classes = np.full(rows.shape[0], -1, dtype=np.int64)
    classes_of_cell = np.zeros(rows.shape[1], dtype=np.int64)  # set of classes as the bits of an integer
    for constraint in touched:
        cells = rows.indices[rows.indptr[constraint] : rows.indptr[constraint + 1]]
        taken = int(np.bitwise_or.reduce(classes_of_cell[cells]))
        colour = 0
        while taken >> colour & 1 and colour < 61:
            colour += 1
        classes[constraint] = colour
        classes_of_cell[cells] |= 1 << colour
    return classes
