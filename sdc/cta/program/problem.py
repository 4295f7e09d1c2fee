"""A table prepared for the methods: positions, levels and room per cell, scaled to the solver's liking."""

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
#: Levels are scaled to about this size, so that the solver's absolute tolerances are relative ones.
TYPICAL_LEVEL = 64.0
#: A free cell never needs to move further than all protections together can push it.
_ROOM_MARGIN = 2.0


@dataclass(frozen=True, eq=False)
class Problem:
    """Cox 2005 (1)-(4), (7), (8) with one binary B per sensitive cell, in scaled units.

    With B the base deviation of a sensitive cell is ``-down + (up + down) B``. In mode "exact" it stops
    there; in mode "at-least" it may go on outwards by ``rise_room`` or ``fall_room``.

    Attributes
    ----------
    table : CellTable
    exact : bool
    lines : sparse (lines, cells)
        The relations without empty and repeated lines.
    line_numbers : (lines,) positions of those lines in ``table.relations``
    sensitive : (p,) positions of cells that need a direction
    free : (m,) positions of other cells that may move
    up, down : (p,) levels U and L
    rise_room, fall_room : (p,) room beyond the levels; zero in mode "exact"
    rise, fall : (m,) capacities of the free cells
    sensitive_costs, free_costs : (p,), (m,)
    forced : (p,) int8
        1 or 0 where only up or only down has room, -1 where both do.
    unit, cost_unit : powers of two
        Original value per scaled unit, original cost per scaled cost.
    held : (lines,)
        What cells outside this part of a table add to its lines by staying where they are; zero for a whole
        table.
    """

    table: CellTable
    exact: bool
    lines: sparse.csr_matrix
    line_numbers: np.ndarray
    sensitive: np.ndarray
    free: np.ndarray
    up: np.ndarray
    down: np.ndarray
    rise_room: np.ndarray
    fall_room: np.ndarray
    rise: np.ndarray
    fall: np.ndarray
    sensitive_costs: np.ndarray
    free_costs: np.ndarray
    forced: np.ndarray
    unit: float
    cost_unit: float
    held: np.ndarray

    @classmethod
    def of(cls, table: CellTable, mode: Mode) -> Problem:
        """Prepare a table; mode is "at-least" or "exact"."""
        if mode not in ("at-least", "exact"):
            raise InvalidParameter(f"unknown mode {mode!r}; expected 'at-least' or 'exact'")
        exact = mode == "exact"
        lower, upper = table.lower_protection, table.upper_protection
        directed, movable = moving_cells(table, exact)
        s, f = np.flatnonzero(directed), np.flatnonzero(movable)
        unit = _power_of_two(np.mean(lower[s] + upper[s]) / 2 / TYPICAL_LEVEL) if len(s) else 1.0
        positive = table.costs[table.costs > 0]
        cost_unit = _power_of_two(float(np.median(positive))) if len(positive) else 1.0
        far = _ROOM_MARGIN * float(np.sum(np.maximum(lower[s], upper[s])))
        rise = np.minimum(table.upper_capacity, far) / unit
        fall = np.minimum(table.lower_capacity, far) / unit
        up, down = upper[s] / unit, lower[s] / unit
        forced = np.full(len(s), -1, dtype=np.int8)
        forced[~table.can_fall[s]] = 1
        forced[~table.can_rise[s]] = 0
        none = np.zeros(len(s))
        lines, numbers = _distinct_lines(table.relations)
        return cls(
            table=table,
            exact=exact,
            lines=lines,
            line_numbers=numbers,
            sensitive=s,
            free=f,
            up=up,
            down=down,
            rise_room=none if exact else np.maximum(rise[s] - up, 0.0),
            fall_room=none if exact else np.maximum(fall[s] - down, 0.0),
            rise=rise[f],
            fall=fall[f],
            sensitive_costs=table.costs[s] / cost_unit,
            free_costs=table.costs[f] / cost_unit,
            forced=forced,
            unit=unit,
            cost_unit=cost_unit,
            held=np.zeros(len(numbers)),
        )

    def part(
        self, lines: np.ndarray, sensitive: np.ndarray, free: np.ndarray, held: np.ndarray | None = None
    ) -> Problem:
        """Some lines and cells, by their positions in these arrays; what stays outside adds `held`.

        Only the program for given directions reads `held`: bounds are of whole tables, or hold without it.
        """
        return replace(
            self,
            lines=self.lines[lines],
            line_numbers=self.line_numbers[lines],
            sensitive=self.sensitive[sensitive],
            free=self.free[free],
            up=self.up[sensitive],
            down=self.down[sensitive],
            rise_room=self.rise_room[sensitive],
            fall_room=self.fall_room[sensitive],
            rise=self.rise[free],
            fall=self.fall[free],
            sensitive_costs=self.sensitive_costs[sensitive],
            free_costs=self.free_costs[free],
            forced=self.forced[sensitive],
            held=self.held[lines] if held is None else held,
        )

    @cached_property
    def summation(self) -> Summation | None:
        """How margins are sums of internal cells; None where these do not determine the table freely."""
        return Summation.of(self.table.relations)

    @property
    def mirrored(self) -> bool:
        """Whether the opposite of every solution is one of the same cost."""
        ways = ((self.up, self.down), (self.rise_room, self.fall_room), (self.rise, self.fall))
        same = all(np.array_equal(one, other) for one, other in ways)
        return same and self.table.quality is None and bool(np.all(self.forced < 0))

    @property
    def size(self) -> int:
        """Number p of sensitive cells that need a direction."""
        return len(self.sensitive)

    @property
    def swing(self) -> np.ndarray:
        """(p,) what a change of direction moves: up + down."""
        return self.up + self.down

    @property
    def incidence(self) -> sparse.csc_matrix:
        """(lines, p) relations of the sensitive cells."""
        return sparse.csc_matrix(self.lines[:, self.sensitive])

    @property
    def cheaper_levels(self) -> np.ndarray:
        """(p,) the cheaper admissible level of every sensitive cell."""
        return np.where(
            self.forced == 1, self.up, np.where(self.forced == 0, self.down, np.minimum(self.up, self.down))
        )

    @property
    def unavoidable(self) -> float:
        """Scaled cost no solution can avoid: sensitive cells at their cheaper levels."""
        return float(self.sensitive_costs @ self.cheaper_levels)

    def base(self, directions: np.ndarray) -> np.ndarray:
        """(p,) signed base deviations for directions of 0 (down) and 1 (up)."""
        return np.where(directions > 0, self.up, -self.down)

    def admissible(self, directions: np.ndarray) -> np.ndarray:
        """Directions with forced cells put right, as int8."""
        return np.where(self.forced >= 0, self.forced, directions).astype(np.int8)

    def cost(self, deviations: np.ndarray) -> float:
        """Objective (1) of scaled deviations of all cells, in original units."""
        return float(self.table.costs @ np.abs(deviations)) * self.unit

    @property
    def objective_unit(self) -> float:
        """Original objective per scaled objective."""
        return self.unit * self.cost_unit


def moving_cells(table: CellTable, exact: bool) -> tuple[np.ndarray, np.ndarray]:
    """(cells,) whether each needs a direction, and whether it may move without one."""
    directed = table.sensitive & ((table.lower_protection > 0) | (table.upper_protection > 0))
    free = ~table.sensitive if exact else ~directed
    return directed, free & ((table.lower_capacity > 0) | (table.upper_capacity > 0))


def _power_of_two(number: float) -> float:
    return float(2.0 ** np.round(np.log2(number))) if number > 0 else 1.0


def _distinct_lines(relations: sparse.csr_matrix) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Drop empty lines and exact repeats (the same cells up to a common sign), first ones kept."""
    seen: set[bytes] = set()
    firsts = []
    pointers, cells, entries = relations.indptr, relations.indices, relations.data
    for line in range(relations.shape[0]):
        start, end = pointers[line], pointers[line + 1]
        if start == end:
            continue
        key = cells[start:end].tobytes() + (entries[start:end] == entries[start]).tobytes()
        if key not in seen:
            seen.add(key)
            firsts.append(line)
    numbers = np.array(firsts, dtype=np.int64)
    return relations[numbers], numbers
