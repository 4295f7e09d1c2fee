"""Write the problem and its solution as a tau-ARGUS `.jj` file, for the evidence: it has the true values.

Other solvers of cell suppression read such files. The solution is in the column of the status: u is sensitive
and suppressed, m suppressed with it, z published as it must be, s published. In what readers get (`.tab`, see
`tau_argus`) the status does not tell u from m.

References
----------
Meindl, sdcTable 0.32, `createJJFormat` and `writeJJFormat`: the format, without a solution.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from microguard.sdc.suppression import SuppressionProblem

NAME = "suppression.jj"


def write_jj(path: Path, problem: SuppressionProblem, suppressed: np.ndarray, digits: int) -> None:
    """Write cells with costs, status, bounds and levels, then the lines of the table.

    A line of a cell: number, value, cost, status, lower and upper bound, lower, upper and sliding level. A
    line of the table: 0, how many cells it has, and each with its sign.

    Parameters
    ----------
    problem : SuppressionProblem
        In units of the last published digit, with cells of earlier tables after those of this one.
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
            further = " ".join(f"{amount * scale:.{digits}f}" for amount in amounts[cell])
            file.write(f"{cell} {value * scale:.{digits}f} {cost:.12g} {status[cell]} {further}\n")
        file.write(f"{relations.shape[0]}\n")
        for start, stop in zip(relations.indptr[:-1], relations.indptr[1:], strict=True):
            parts = zip(relations.indices[start:stop], relations.data[start:stop], strict=True)
            file.write(f"0 {stop - start} : {' '.join(f'{cell} ({sign:.0f})' for cell, sign in parts)}\n")
