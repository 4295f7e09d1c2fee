"""Integer distances of nominal, ordinal and hierarchical variables, and of variables with a cost matrix.

The distance of two values of an ordinal variable is the number of steps between them. For a hierarchical
variable it is the number of levels below the lowest common ancestor. A cost matrix states the distance
directly. The weight of a variable multiplies its distances. All distances are integers, because the
partitioning rounds lower bounds up.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import InvalidParameter

Coarsening = tuple[int, np.ndarray]
"""Coarsening of a variable: largest distance within a group, and the group of each value, (values,)."""


@dataclass(frozen=True)
class Columns:
    """Encoding of a variable's values as columns of `Points`.

    Attributes
    ----------
    codes : (values, c) int array
        Codes of each value in c columns.
    weights : (c,) int array
        Cost of a mismatch in each column.
    costs : (values, values) int array, optional
        Cost matrix that replaces the weight of a single column.
    """

    codes: np.ndarray
    weights: np.ndarray
    costs: np.ndarray | None = None


@dataclass(frozen=True)
class Nominal:
    """Distance of a nominal variable: a mismatch costs `weight`, an integer of at least 1."""

    weight: int = 1

    def __post_init__(self) -> None:
        _check_weight(self.weight)

    def columns(self, values: Sequence[Hashable]) -> Columns:
        """Encode the values as one column."""
        return Columns(np.arange(len(values))[:, None], np.array([self.weight]))

    def coarser(self, values: Sequence[Hashable]) -> list[Coarsening]:
        """Return the only coarsening: all values in one group."""
        return [(self.weight, np.zeros(len(values), np.int64))]


@dataclass(frozen=True)
class Ordinal:
    """Distance of an ordinal variable: each step between neighbouring values costs `weight`.

    Attributes
    ----------
    weight : int
    positions : mapping of value to int, optional
        Position of each value in steps. By default the values have consecutive positions in code order.
    missing : int, optional
        Distance in steps of a value without a position to every other value. By default every value must have
        a position.
    """

    weight: int = 1
    positions: Mapping[Hashable, int] | None = None
    missing: int | None = None

    def __post_init__(self) -> None:
        _check_weight(self.weight)
        if self.positions is not None and len(set(self.positions.values())) < len(self.positions):
            raise InvalidParameter(
                "positions: expected a different position for each value, found a repeated one"
            )
        if self.missing is not None:
            _check_weight(self.missing)

    def columns(self, values: Sequence[Hashable]) -> Columns:
        """Encode the values as one column with the matrix of their distances."""
        places, known = self._places(values)
        steps = np.abs(places[:, None] - places)
        strange = ~known[:, None] | ~known
        steps = np.where(strange, self.missing or 0, steps)
        np.fill_diagonal(steps, 0)
        return Columns(np.arange(len(values))[:, None], np.array([self.weight]), self.weight * steps)

    def coarser(self, values: Sequence[Hashable]) -> list[Coarsening]:
        """Return groups of 2, 4, ... neighbours, then one group of all values.

        A value without a position is a separate group until the last coarsening.
        """
        places, known = self._places(values)
        rank = np.empty(len(values), np.int64)
        rank[np.argsort(np.where(known, places, np.iinfo(np.int64).max), kind="stable")] = np.arange(
            len(values)
        )
        levels, shift = [], 1
        while known.sum() > 1 << shift:
            group = np.where(known, rank >> shift, len(values) + rank)
            spread = max(np.ptp(places[group == each]) for each in np.unique(group[known]))
            levels.append((self.weight * int(spread), group))
            shift += 1
        largest = int(np.ptp(places[known])) if known.any() else 0
        if not known.all():
            largest = max(largest, self.missing or 0)
        return [*levels, (self.weight * largest, np.zeros(len(values), np.int64))]

    def _places(self, values: Sequence[Hashable]) -> tuple[np.ndarray, np.ndarray]:
        """Return the position of each value, and whether the value has one."""
        if self.positions is None:
            return np.arange(len(values)), np.ones(len(values), bool)
        known = np.array([value in self.positions for value in values], bool)
        if not known.all() and self.missing is None:
            raise InvalidParameter(
                f"ordinal variable: expected a position for every value, found {int((~known).sum())} with no "
                "position. Add them to positions, or set missing"
            )
        return np.array([self.positions.get(value, 0) for value in values], np.int64), known


@dataclass(frozen=True)
class Hierarchical:
    """Distance of a hierarchical variable: each level below the lowest common ancestor costs `weight`.

    Attributes
    ----------
    ancestors : mapping of value to sequence
        Ancestors of each value, finest level first, without the value itself. All values have the same number
        of ancestors.
    weight : int
    """

    ancestors: Mapping[Hashable, Sequence[Hashable]]
    weight: int = 1

    def __post_init__(self) -> None:
        _check_weight(self.weight)
        if len({len(above) for above in self.ancestors.values()}) > 1:
            raise InvalidParameter(
                "ancestors: expected one per level for every value, found different numbers of ancestors"
            )
        for level in range(1, self._levels):
            parents = {(above[level - 1], above[level]) for above in self.ancestors.values()}
            if len({child for child, _ in parents}) < len(parents):
                raise InvalidParameter("ancestors: expected one parent of each code, found a code with two")

    @property
    def _levels(self) -> int:
        return min((len(above) for above in self.ancestors.values()), default=0)

    def columns(self, values: Sequence[Hashable]) -> Columns:
        """Encode the values as one column per level, the values themselves first."""
        absent = sum(value not in self.ancestors for value in values)
        if absent:
            raise InvalidParameter(
                f"hierarchical variable: expected ancestors of every value, found {absent} values that are "
                "not in its tree. Add them to ancestors"
            )
        levels = [np.arange(len(values))]
        for level in range(self._levels):
            codes: dict[Hashable, int] = {}
            levels.append(
                np.array([codes.setdefault(self.ancestors[value][level], len(codes)) for value in values])
            )
        return Columns(np.column_stack(levels), np.full(len(levels), self.weight))

    def coarser(self, values: Sequence[Hashable]) -> list[Coarsening]:
        """Return the groups of values with a common ancestor, level by level."""
        levels = self.columns(values).codes.T
        groups = [*levels[1:], np.zeros(len(values), np.int64)]
        return [(self.weight * (height + 1), group) for height, group in enumerate(groups)]


@dataclass(frozen=True)
class Costs:
    """Distance by a cost matrix: the cost of publishing one value in place of another.

    Attributes
    ----------
    values : sequence
        Values in the order of the rows.
    matrix : (values, values) int array
        Symmetric, 0 on the diagonal and positive elsewhere.
    """

    values: Sequence[Hashable]
    matrix: np.ndarray

    def __post_init__(self) -> None:
        matrix = np.asarray(self.matrix)
        number = len(self.values)
        if matrix.shape != (number, number) or len(set(self.values)) < number:
            raise InvalidParameter(
                f"matrix: expected shape {(number, number)} for {number} different values, found "
                f"{matrix.shape}"
            )
        if not np.issubdtype(matrix.dtype, np.integer):
            raise InvalidParameter(f"matrix: expected whole numbers, found type {matrix.dtype}")
        if (matrix != matrix.T).any() or matrix.diagonal().any() or (matrix + np.eye(number) < 1).any():
            raise InvalidParameter(
                "matrix: expected a symmetric matrix with 0 on the diagonal and positive costs elsewhere, "
                "found another"
            )

    def columns(self, values: Sequence[Hashable]) -> Columns:
        """Encode the values as one column with their rows and columns of the matrix."""
        row = {value: place for place, value in enumerate(self.values)}
        absent = sum(value not in row for value in values)
        if absent:
            raise InvalidParameter(
                f"variable with a cost matrix: expected values of the matrix, found {absent} others. Add "
                "them to the matrix"
            )
        rows = np.array([row[value] for value in values], np.int64)
        costs = np.asarray(self.matrix, np.int64)[np.ix_(rows, rows)]
        return Columns(np.arange(len(values))[:, None], np.ones(1, np.int64), costs)

    def coarser(self, values: Sequence[Hashable]) -> list[Coarsening]:
        """Return the only coarsening: all values in one group."""
        costs = self.columns(values).costs
        return [(0 if costs is None else int(costs.max(initial=0)), np.zeros(len(values), np.int64))]


Distance = Nominal | Ordinal | Hierarchical | Costs


def _check_weight(weight: int) -> None:
    if isinstance(weight, bool) or not isinstance(weight, int | np.integer) or weight < 1:
        raise InvalidParameter(f"weight: expected a whole number of at least 1, found {weight!r}")
