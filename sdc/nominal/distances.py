"""Distances of nominal, ordinal and hierarchical variables, and of any whose mismatches have prices.

An ordinal variable costs its steps between two values, a hierarchical one the levels below their nearest
common ancestor, one with a cost matrix what stands there; a weight multiplies. All are whole numbers, so that
the partition's proofs, which round bounds up, hold for them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import InvalidParameter

Coarsening = tuple[int, np.ndarray]
"""No two values of a group are farther apart than this, and the group of each value, (values,)."""


@dataclass(frozen=True)
class Columns:
    """A variable as columns of points: `codes` (values, c) and `weights` (c,).

    `costs` (values, values) stands in place of the weight of a single column.
    """

    codes: np.ndarray
    weights: np.ndarray
    costs: np.ndarray | None = None


@dataclass(frozen=True)
class Nominal:
    """Any two values are alike or not: a mismatch costs `weight`, a whole number of units."""

    weight: int = 1

    def __post_init__(self) -> None:
        _check_weight(self.weight)

    def columns(self, values: Sequence[Hashable]) -> Columns:
        """The values as they are."""
        return Columns(np.arange(len(values))[:, None], np.array([self.weight]))

    def coarser(self, values: Sequence[Hashable]) -> list[Coarsening]:
        """All values together."""
        return [(self.weight, np.zeros(len(values), np.int64))]


@dataclass(frozen=True)
class Ordinal:
    """Values in an order: each step between neighbours costs `weight`.

    Attributes
    ----------
    weight : int
    positions : mapping of value to int, optional
        Steps of each value from the lowest; by default values follow each other in the order of their codes.
    missing : int, optional
        What a value without a position is from every other, in steps; by default there is none such.
    """

    weight: int = 1
    positions: Mapping[Hashable, int] | None = None
    missing: int | None = None

    def __post_init__(self) -> None:
        _check_weight(self.weight)
        if self.positions is not None and len(set(self.positions.values())) < len(self.positions):
            raise InvalidParameter("two values of an order have one position; expected one each")
        if self.missing is not None:
            _check_weight(self.missing)

    def columns(self, values: Sequence[Hashable]) -> Columns:
        """The values with the matrix of their steps."""
        places, known = self._places(values)
        steps = np.abs(places[:, None] - places)
        strange = ~known[:, None] | ~known
        steps = np.where(strange, self.missing or 0, steps)
        np.fill_diagonal(steps, 0)
        return Columns(np.arange(len(values))[:, None], np.array([self.weight]), self.weight * steps)

    def coarser(self, values: Sequence[Hashable]) -> list[Coarsening]:
        """Groups of 2, 4, ... neighbours; a value without a position alone until all are together."""
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
        """Position of each value, and whether it has one."""
        if self.positions is None:
            return np.arange(len(values)), np.ones(len(values), bool)
        known = np.array([value in self.positions for value in values], bool)
        if not known.all() and self.missing is None:
            raise InvalidParameter(f"{int((~known).sum())} values of an ordinal variable have no position")
        return np.array([self.positions.get(value, 0) for value in values], np.int64), known


@dataclass(frozen=True)
class Hierarchical:
    """Values in a tree: each level below the nearest common ancestor costs `weight`.

    Attributes
    ----------
    ancestors : mapping of value to sequence
        Ancestors of each value, finest level first, the same number for each; the value itself left out.
    weight : int
    """

    ancestors: Mapping[Hashable, Sequence[Hashable]]
    weight: int = 1

    def __post_init__(self) -> None:
        _check_weight(self.weight)
        if len({len(above) for above in self.ancestors.values()}) > 1:
            raise InvalidParameter("a tree has values with unlike numbers of ancestors; expected one a level")
        for level in range(1, self._levels):
            parents = {(above[level - 1], above[level]) for above in self.ancestors.values()}
            if len({child for child, _ in parents}) < len(parents):
                raise InvalidParameter("a code of a tree lies under two others; expected one parent each")

    @property
    def _levels(self) -> int:
        return min((len(above) for above in self.ancestors.values()), default=0)

    def columns(self, values: Sequence[Hashable]) -> Columns:
        """A column per level, the values themselves first."""
        absent = sum(value not in self.ancestors for value in values)
        if absent:
            raise InvalidParameter(f"{absent} values of a hierarchical variable are not in its tree")
        levels = [np.arange(len(values))]
        for level in range(self._levels):
            codes: dict[Hashable, int] = {}
            levels.append(
                np.array([codes.setdefault(self.ancestors[value][level], len(codes)) for value in values])
            )
        return Columns(np.column_stack(levels), np.full(len(levels), self.weight))

    def coarser(self, values: Sequence[Hashable]) -> list[Coarsening]:
        """The values of an ancestor together, level by level."""
        levels = self.columns(values).codes.T
        groups = [*levels[1:], np.zeros(len(values), np.int64)]
        return [(self.weight * (height + 1), group) for height, group in enumerate(groups)]


@dataclass(frozen=True)
class Costs:
    """Values with a matrix of prices: what it costs to publish one for another.

    Attributes
    ----------
    values : sequence
        In the order of the rows.
    matrix : (values, values) array of whole numbers
        Symmetric, 0 on the diagonal, above 0 elsewhere: what costs nothing is one value.
    """

    values: Sequence[Hashable]
    matrix: np.ndarray

    def __post_init__(self) -> None:
        matrix = np.asarray(self.matrix)
        number = len(self.values)
        if matrix.shape != (number, number) or len(set(self.values)) < number:
            raise InvalidParameter(f"a cost matrix of shape {matrix.shape} for {number} values, each once")
        if not np.issubdtype(matrix.dtype, np.integer):
            raise InvalidParameter(f"costs are whole numbers, found {matrix.dtype}")
        if (matrix != matrix.T).any() or matrix.diagonal().any() or (matrix + np.eye(number) < 1).any():
            raise InvalidParameter("a cost matrix is symmetric, 0 on its diagonal, and above 0 elsewhere")

    def columns(self, values: Sequence[Hashable]) -> Columns:
        """The values with their part of the matrix."""
        row = {value: place for place, value in enumerate(self.values)}
        absent = sum(value not in row for value in values)
        if absent:
            raise InvalidParameter(f"{absent} values of a variable are not in its cost matrix")
        rows = np.array([row[value] for value in values], np.int64)
        costs = np.asarray(self.matrix, np.int64)[np.ix_(rows, rows)]
        return Columns(np.arange(len(values))[:, None], np.ones(1, np.int64), costs)

    def coarser(self, values: Sequence[Hashable]) -> list[Coarsening]:
        """All values together."""
        costs = self.columns(values).costs
        return [(0 if costs is None else int(costs.max(initial=0)), np.zeros(len(values), np.int64))]


Distance = Nominal | Ordinal | Hierarchical | Costs


def _check_weight(weight: int) -> None:
    if isinstance(weight, bool) or not isinstance(weight, int | np.integer) or weight < 1:
        raise InvalidParameter(f"the weight of a variable is a whole number of at least 1, found {weight!r}")
