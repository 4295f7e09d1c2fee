"""Problem and solution as a tau-ARGUS `.jj` file for the evidence; the file contains the true values.

Other solvers of cell suppression read such files. The status column has the solution: u is sensitive and
suppressed (primary), m is suppressed to protect others (secondary), z must be published, s is published. In
the published files (`.tab`, see `tau_argus`) the status does not distinguish u from m.

References
----------
Meindl, sdcTable 0.32, `createJJFormat` and `writeJJFormat`: the format, without a solution.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from microguard.sdc.suppression import SuppressionProblem

NAME = "suppression.jj"
#: Number of further digits of a cell that no table has, which is no whole number of units.
FURTHER = 6


def write_jj(path: Path, problem: SuppressionProblem, suppressed: np.ndarray, digits: int) -> None:
    """Write the cells with costs, status, bounds and levels, followed by the constraints of the table.

    The record of a cell has number, value, cost, status, lower and upper bound, and lower, upper and sliding
    level. The record of a table line has 0, the number of its cells, and each cell with its sign.

    Parameters
    ----------
    problem : SuppressionProblem
        The problem in units of the last published digit; cells of earlier tables follow those of this table.
    suppressed : (cells,) boolean array
    digits : decimals of the values
    """
    status = np.where(problem.keep, "z", "s")
    status[suppressed] = "m"
    status[problem.primary] = "u"
    amounts = np.column_stack(
        [getattr(problem, name) for name in ("lower_bound", "upper_bound", "lower_level", "upper_level")]
        + [problem.sliding_level]
    )
    scale = 10.0**-digits
    relations = problem.relations
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"0\n{problem.cells}\n")
        for cell, (value, cost) in enumerate(zip(problem.values, problem.costs, strict=True)):
            places = digits if value == np.rint(value) else digits + FURTHER
            further = " ".join(f"{amount * scale:.{places}f}" for amount in amounts[cell])
            file.write(f"{cell} {value * scale:.{places}f} {cost:.12g} {status[cell]} {further}\n")
        file.write(f"{relations.shape[0]}\n")
        for start, stop in zip(relations.indptr[:-1], relations.indptr[1:], strict=True):
            parts = zip(relations.indices[start:stop], relations.data[start:stop], strict=True)
            file.write(f"0 {stop - start} : {' '.join(f'{cell} ({sign:.0f})' for cell, sign in parts)}\n")
