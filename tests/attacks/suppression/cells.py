"""Attack program: narrow suppressed cells of a published two-way table by linear programs.

The attacker has the rows of the public file. The attacker knows that no value is negative and none exceeds
twice the original value (the bounds that the rule assumes). The attacker may also know the values of own
cells.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.optimize import linprog

Cell = tuple[str, str]


def intervals(
    published: pd.DataFrame, largest: Mapping[Cell, float], known: Mapping[Cell, float], total: str = "Total"
) -> dict[Cell, tuple[float, float]]:
    """Return the lowest and highest value of each suppressed cell.

    Parameters
    ----------
    published : frame of two columns of codes, the value (missing where suppressed) and the status
    largest : upper bound of each cell
    known : values that the attacker knows by himself
    """
    rows, columns, value = published.columns[:3]
    cells = list(zip(published[rows], published[columns], strict=True))
    place = {cell: position for position, cell in enumerate(cells)}
    values = published[value].astype(float).to_numpy()
    bounds = [
        (values[i], values[i])
        if not np.isnan(values[i])
        else (known[cell], known[cell])
        if cell in known
        else (0.0, largest[cell])
        for i, cell in enumerate(cells)
    ]
    lines = []
    for axis in (0, 1):
        for fixed in dict.fromkeys(cell[1 - axis] for cell in cells):
            line = np.zeros(len(cells))
            for cell, i in place.items():
                if cell[1 - axis] == fixed:
                    line[i] = -1.0 if cell[axis] == total else 1.0
            lines.append(line)
    found = {}
    for cell in [cell for cell, i in place.items() if np.isnan(values[i])]:
        aim = np.zeros(len(cells))
        aim[place[cell]] = 1.0
        ends = [
            linprog(side * aim, A_eq=np.array(lines), b_eq=np.zeros(len(lines)), bounds=bounds)
            for side in (1, -1)
        ]
        assert all(end.status == 0 for end in ends)
        found[cell] = (ends[0].fun, -ends[1].fun)
    return found
