"""A table in the form used by the methods: positions of cells, scaled protection levels and capacities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from microguard.sdc.cta.table.cell_table import CellTable
from microguard.sdc.cta.table.summation import Summation
from microguard.sdc.errors import InvalidParameter
from scipy import sparse

Mode = Literal["at-least", "exact"]
#: Protection levels are scaled to about this size, so that the solver's absolute tolerances are relatively
#: small.
TYPICAL_LEVEL = 64.0
#: Maximum deviation of a free cell, relative to the sum of all protection levels. No solution needs a larger
#: one.
_LARGEST_DEVIATION = 2.0


@dataclass(frozen=True, eq=False)
class Problem:
    """Cox 2005 (1)-(4), (7), (8) with one binary B per sensitive cell, in scaled units.

    The base deviation of a sensitive cell is ``-down + (up + down) B``. In mode "exact" it is the deviation.
    In mode "at-least" the cell may deviate further, by up to ``rise_slack`` or ``fall_slack``.

    Attributes
    ----------
    table : CellTable
    exact : bool
    constraints : sparse (constraints, cells)
        The relations of the table without empty and repeated ones.
    constraint_numbers : (constraints,) positions of those constraints in ``table.relations``
    sensitive : (p,) positions of cells that need a direction
    free : (m,) positions of other cells that may move
    up, down : (p,) levels U and L
    rise_slack, fall_slack : (p,) capacity beyond the levels; zero in mode "exact"
    rise, fall : (m,) capacities of the free cells
    sensitive_costs, free_costs : (p,), (m,)
    forced : (p,) int8
        1 or 0 if the capacities allow only up or only down, -1 if they allow both.
    unit, cost_unit : powers of two
        Original value per scaled unit, original cost per scaled cost.
    outside : (constraints,)
        Sum of the fixed deviations of cells outside a subproblem in each constraint; zero for a whole table.
    """

    table: CellTable
    exact: bool
    constraints: sparse.csr_matrix
    constraint_numbers: np.ndarray
    sensitive: np.ndarray
    free: np.ndarray
    up: np.ndarray
    down: np.ndarray
    rise_slack: np.ndarray
    fall_slack: np.ndarray
    rise: np.ndarray
    fall: np.ndarray
    sensitive_costs: np.ndarray
    free_costs: np.ndarray
    forced: np.ndarray
    unit: float
    cost_unit: float
    outside: np.ndarray

    @classmethod
    def from_table(cls, table: CellTable, mode: Mode) -> Problem:
        """Scale a table; mode is "at-least" or "exact".

        Raises
        ------
        InvalidParameter
            For another mode.
        """
        if mode not in ("at-least", "exact"):
            raise InvalidParameter(f"mode: expected 'at-least' or 'exact', found {mode!r}")
        exact = mode == "exact"
        lower, upper = table.lower_protection, table.upper_protection
        directed, movable = moving_cells(table, exact)
        s, f = np.flatnonzero(directed), np.flatnonzero(movable)
        unit = _power_of_two(np.mean(lower[s] + upper[s]) / 2 / TYPICAL_LEVEL) if len(s) else 1.0
        positive = table.costs[table.costs > 0]
        cost_unit = _power_of_two(float(np.median(positive))) if len(positive) else 1.0
        far = _LARGEST_DEVIATION * float(np.sum(np.maximum(lower[s], upper[s])))
        rise = np.minimum(table.upper_capacity, far) / unit
        fall = np.minimum(table.lower_capacity, far) / unit
        up, down = upper[s] / unit, lower[s] / unit
        forced = np.full(len(s), -1, dtype=np.int8)
        forced[~table.can_fall[s]] = 1
        forced[~table.can_rise[s]] = 0
        none = np.zeros(len(s))
        constraints, numbers = _distinct_constraints(table.relations)
        return cls(
            table=table,
            exact=exact,
            constraints=constraints,
            constraint_numbers=numbers,
            sensitive=s,
            free=f,
            up=up,
            down=down,
            rise_slack=none if exact else np.maximum(rise[s] - up, 0.0),
            fall_slack=none if exact else np.maximum(fall[s] - down, 0.0),
            rise=rise[f],
            fall=fall[f],
            sensitive_costs=table.costs[s] / cost_unit,
            free_costs=table.costs[f] / cost_unit,
            forced=forced,
            unit=unit,
            cost_unit=cost_unit,
            outside=np.zeros(len(numbers)),
        )

    def subproblem(
        self,
        constraints: np.ndarray,
        sensitive: np.ndarray,
        free: np.ndarray,
        outside: np.ndarray | None = None,
    ) -> Problem:
        """Restrict the problem to some constraints and cells, given by their positions.

        `outside` (constraints,) is the sum of the deviations of all other cells, which are fixed. Only the
        linear program for fixed directions uses `outside`. Lower bounds are computed for whole tables, or are
        valid without it.
        """
        return replace(
            self,
            constraints=self.constraints[constraints],
            constraint_numbers=self.constraint_numbers[constraints],
            sensitive=self.sensitive[sensitive],
            free=self.free[free],
            up=self.up[sensitive],
            down=self.down[sensitive],
            rise_slack=self.rise_slack[sensitive],
            fall_slack=self.fall_slack[sensitive],
            rise=self.rise[free],
            fall=self.fall[free],
            sensitive_costs=self.sensitive_costs[sensitive],
            free_costs=self.free_costs[free],
            forced=self.forced[sensitive],
            outside=self.outside[constraints] if outside is None else outside,
        )

    @cached_property
    def summation(self) -> Summation | None:
        """Return the margins as sums of internal cells; None if internal cells cannot take arbitrary
        values.
        """
        return Summation.from_relations(self.table.relations)

    @property
    def mirrored(self) -> bool:
        """Return whether the negative of every solution is a solution with the same cost."""
        pairs = ((self.up, self.down), (self.rise_slack, self.fall_slack), (self.rise, self.fall))
        same = all(np.array_equal(one, other) for one, other in pairs)
        return same and self.table.quality is None and bool(np.all(self.forced < 0))

    @property
    def size(self) -> int:
        """Return the number p of sensitive cells that need a direction."""
        return len(self.sensitive)

    @property
    def swing(self) -> np.ndarray:
        """Return the change of the base deviation if the direction changes: up + down, (p,)."""
        return self.up + self.down

    @property
    def incidence(self) -> sparse.csc_matrix:
        """Return the columns of the sensitive cells, (constraints, p)."""
        return sparse.csc_matrix(self.constraints[:, self.sensitive])

    @property
    def cheaper_levels(self) -> np.ndarray:
        """Return the smaller of the allowed protection levels of each sensitive cell, (p,)."""
        return np.where(
            self.forced == 1, self.up, np.where(self.forced == 0, self.down, np.minimum(self.up, self.down))
        )

    @property
    def unavoidable(self) -> float:
        """Return the scaled cost of all sensitive cells at their smaller levels, a lower bound on every
        solution.
        """
        return float(self.sensitive_costs @ self.cheaper_levels)

    def base(self, directions: np.ndarray) -> np.ndarray:
        """Return the signed base deviations (p,) for directions of 0 (down) and 1 (up)."""
        return np.where(directions > 0, self.up, -self.down)

    def admissible(self, directions: np.ndarray) -> np.ndarray:
        """Set forced cells to their only possible direction; (p,) int8."""
        return np.where(self.forced >= 0, self.forced, directions).astype(np.int8)

    def cost(self, deviations: np.ndarray) -> float:
        """Compute the objective (1) of Cox 2005 for scaled deviations (cells,), in original units."""
        return float(self.table.costs @ np.abs(deviations)) * self.unit

    @property
    def objective_unit(self) -> float:
        """Return the factor that converts scaled objectives to original units."""
        return self.unit * self.cost_unit


def moving_cells(table: CellTable, exact: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return for each cell whether it needs a direction and whether it may change without one,
    (cells,) each.
    """
    directed = table.sensitive & ((table.lower_protection > 0) | (table.upper_protection > 0))
    free = ~table.sensitive if exact else ~directed
    return directed, free & ((table.lower_capacity > 0) | (table.upper_capacity > 0))


def _power_of_two(number: float) -> float:
    return float(2.0 ** np.round(np.log2(number))) if number > 0 else 1.0


def _distinct_constraints(relations: sparse.csr_matrix) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Drop empty constraints and repeated constraints (equal entries up to a common sign).

    Returns the remaining constraints and their positions.
    """
    seen: set[bytes] = set()
    firsts = []
    pointers, cells, entries = relations.indptr, relations.indices, relations.data
    for constraint in range(relations.shape[0]):
        start, end = pointers[constraint], pointers[constraint + 1]
        if start == end:
            continue
        key = cells[start:end].tobytes() + (entries[start:end] == entries[start]).tobytes()
        if key not in seen:
            seen.add(key)
            firsts.append(constraint)
    numbers = np.array(firsts, dtype=np.int64)
    return relations[numbers], numbers
