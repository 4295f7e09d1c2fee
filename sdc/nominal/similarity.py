"""How far the combinations of a file are apart, by the distances of its variables."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import InvalidParameter, UnknownVariable
from microguard.sdc.nominal.distances import Coarsening, Columns, Distance, Nominal
from microguard.sdc.nominal.frequency import CodedFrame, FrequencyVector
from microguard.sdc.nominal.points import Points

#: Distances of a file stay below this: the matrix of all of them is of 16 bits.
_LARGEST_DIAMETER = (1 << 15) - 1


@dataclass(frozen=True)
class Similarity:
    """How far combinations are apart.

    Attributes
    ----------
    points : Points
        Of the m combinations.
    coarser : per variable, its coarsenings, finest first
        The cost within a group, and the group of each combination, (m,) int64.
    unit : int
        What a mismatch of the lightest variable costs at most.
    """

    points: Points
    coarser: tuple[tuple[Coarsening, ...], ...]
    unit: int

    @classmethod
    def plain(cls, frequencies: FrequencyVector) -> Similarity:
        """A mismatch costs 1 in any variable."""
        nothing = np.zeros(len(frequencies), np.int64)
        return cls(Points.plain(frequencies.codes), (((1, nothing),),) * frequencies.variables, 1)

    @classmethod
    def of(
        cls,
        frequencies: FrequencyVector,
        values: Sequence[Sequence[Hashable]],
        distances: Mapping[Hashable, Distance],
    ) -> Similarity:
        """Of combinations, given the values of each variable in the order of their codes.

        Parameters
        ----------
        distances : mapping of name to Distance
            Variables without one are nominal of weight 1.

        Raises
        ------
        UnknownVariable, InvalidParameter
            A name that is no variable; values that their distance does not know; distances that add up to
            32,768 or more.
        """
        unknown = [name for name in distances if name not in frequencies.names]
        if unknown:
            raise UnknownVariable(
                f"{len(unknown)} distances are of names that are no variables", variable=str(unknown[0])
            )
        parts, coarser = [], []
        for j, name in enumerate(frequencies.names):
            asked = distances.get(name, Nominal())
            parts.append(asked.columns(values[j]))
            mine = frequencies.codes[:, j]
            coarser.append(tuple((cost, group[mine]) for cost, group in asked.coarser(values[j])))
        points = _joined(frequencies.codes, parts)
        if points.diameter > _LARGEST_DIAMETER:
            raise InvalidParameter(
                f"distances add up to {points.diameter}, expected at most {_LARGEST_DIAMETER}: scale them"
            )
        largest = [levels[-1][0] for levels in coarser if levels[-1][0] > 0]
        return cls(points, tuple(coarser), min(largest, default=1))

    def at(self, members: np.ndarray) -> Similarity:
        """Of the combinations at these positions."""
        coarser = tuple(tuple((cost, group[members]) for cost, group in each) for each in self.coarser)
        return Similarity(self.points.at(members), coarser, self.unit)


def similarity_of(coded: CodedFrame, distances: Mapping[Hashable, Distance]) -> Similarity:
    """Similarity of the combinations of a frame, whose codes follow the order of values or categories."""
    variables = range(coded.frequencies.variables)
    return Similarity.of(coded.frequencies, [coded.values(j) for j in variables], distances)


def _joined(codes: np.ndarray, parts: Sequence[Columns]) -> Points:
    """The columns of all variables, their matrices one after the other."""
    columns, weights, starts, sizes, costs = [], [], [], [], []
    length = 0
    for j, part in enumerate(parts):
        columns.append(part.codes[codes[:, j]])
        weights.append(part.weights)
        start = np.full(len(part.weights), -1)
        size = np.zeros(len(part.weights), np.int64)
        if part.costs is not None:
            start[0], size[0] = length, len(part.costs)
            costs.append(part.costs.ravel())
            length += part.costs.size
        starts.append(start)
        sizes.append(size)
    return Points(
        np.ascontiguousarray(np.column_stack(columns), dtype=np.int32),
        np.concatenate(weights).astype(np.int64),
        np.concatenate(starts).astype(np.int64),
        np.concatenate(sizes),
        np.concatenate(costs).astype(np.int64) if costs else np.empty(0, np.int64),
    )
