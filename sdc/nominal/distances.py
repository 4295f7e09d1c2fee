"""Distances of nominal, ordinal and hierarchical variables, all as Hamming distances of expanded codes.

An ordinal variable of v values becomes v - 1 columns, "is above value i": two values differ in as many of
them as there are steps between them. A hierarchical one becomes a column per level of its tree: two values
differ in as many as there are levels below their nearest common ancestor. A weight repeats columns. So every
method that works on Hamming distances, its local search, bounds and proofs included, carries all of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sdc.errors import InvalidParameter, UnknownVariable
from sdc.nominal.frequency import CodedFrame


@dataclass(frozen=True)
class Nominal:
    """Any two values are alike or not: a mismatch costs `weight`, a whole number of units."""

    weight: int = 1

    def __post_init__(self) -> None:
        _check_weight(self.weight)

    def columns(self, values: Sequence[Hashable]) -> np.ndarray:
        """Expanded codes of the values, (values, columns)."""
        return np.repeat(np.arange(len(values))[:, None], self.weight, axis=1)


@dataclass(frozen=True)
class Ordinal:
    """Values in the order of their codes: each step between neighbours costs `weight`."""

    weight: int = 1

    def __post_init__(self) -> None:
        _check_weight(self.weight)

    def columns(self, values: Sequence[Hashable]) -> np.ndarray:
        """Expanded codes of the values, (values, columns)."""
        places = np.arange(len(values))
        return np.repeat((places[:, None] > places[None, :-1]).astype(np.int64), self.weight, axis=1)


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

    def columns(self, values: Sequence[Hashable]) -> np.ndarray:
        """Expanded codes of the values, (values, columns)."""
        absent = sum(value not in self.ancestors for value in values)
        if absent:
            raise InvalidParameter(f"{absent} values of a hierarchical variable are not in its tree")
        levels = [np.arange(len(values))]
        for level in range(self._levels):
            codes: dict[Hashable, int] = {}
            levels.append(
                np.array([codes.setdefault(self.ancestors[value][level], len(codes)) for value in values])
            )
        return np.repeat(np.column_stack(levels), self.weight, axis=1)


Distance = Nominal | Ordinal | Hierarchical


def expanded_codes(coded: CodedFrame, distances: Mapping[Hashable, Distance]) -> np.ndarray:
    """Codes of the combinations of a frame whose Hamming distances are those asked for, (m, columns) int32.

    Parameters
    ----------
    coded : CodedFrame
        Its codes follow the order of the values, or of the categories: the order of an ordinal variable.
    distances : mapping of name to Distance
        Variables without one are nominal of weight 1.

    Raises
    ------
    UnknownVariable
        A name that is no variable.
    InvalidParameter
        Values that are not in the tree of their variable.
    """
    names = coded.frequencies.names
    unknown = [name for name in distances if name not in names]
    if unknown:
        raise UnknownVariable(
            f"{len(unknown)} distances are of names that are no variables", variable=str(unknown[0])
        )
    columns = [
        distances.get(name, Nominal()).columns(coded.values(j))[coded.frequencies.codes[:, j]]
        for j, name in enumerate(names)
    ]
    return np.ascontiguousarray(np.column_stack(columns), dtype=np.int32)


def _check_weight(weight: int) -> None:
    if isinstance(weight, bool) or not isinstance(weight, int | np.integer) or weight < 1:
        raise InvalidParameter(f"the weight of a variable is a whole number of at least 1, found {weight!r}")
