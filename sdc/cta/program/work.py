"""What linear programs cost, counted so that budgets hold for every shape of table.

The unit is a column of a program solved from nothing, about 20 microseconds of one core. Measured on grids of
two and three dimensions and on hierarchical tables of 2,000 to 19,000 cells; right within a factor of two.
"""

from __future__ import annotations

#: An iteration of the simplex method, per line of the table.
_ITERATION_WORK = 1 / 180
#: Lines beyond which an interior point takes longer in proportion to them: the factors of lines that cross
#: fill.
_FILLING_LINES = 1000
#: Share of a program that a solve from the last basis costs even without an iteration.
_TAKING_UP = 0.05


def work_from_nothing(columns: int, lines: int) -> float:
    """Of a program over a table of so many lines, by an interior point or, where few, the simplex method."""
    return columns * max(1.0, lines / _FILLING_LINES)


def work_from_basis(columns: int, lines: int, iterations: int) -> float:
    """Of a program solved again by so many iterations of the simplex method."""
    return _TAKING_UP * columns + _ITERATION_WORK * max(lines, 1) * iterations
