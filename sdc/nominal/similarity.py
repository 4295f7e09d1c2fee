"""Distances of the key combinations of a file, composed of the distances of the variables."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from microguard.sdc.errors import InvalidParameter, UnknownVariable
from microguard.sdc.nominal.distances import Coarsening, Columns, Distance, Nominal
from microguard.sdc.nominal.frequency import CodedFrame, FrequencyVector
from microguard.sdc.nominal.points import Points

#: Largest possible distance, because distance matrices have 16 bits.
_LARGEST_DIAMETER = (1 << 15) - 1


@dataclass(frozen=True)
class Similarity:
    """Distances between key combinations.

    Attributes
    ----------
    points : Points
        The m combinations as points.
    coarser : tuple of tuples of Coarsening
        Coarsenings of each variable, finest first: the largest distance within a group, and the group of each
        combination, (m,) int64.
    unit : int
        The largest distance of two values of a variable, minimised over the variables.
    """

    points: Points
    coarser: tuple[tuple[Coarsening, ...], ...]
    unit: int

    @classmethod
    def plain(cls, frequencies: FrequencyVector) -> Similarity:
        """Build Hamming distances: a mismatch costs 1 in every variable."""
        nothing = np.zeros(len(frequencies), np.int64)
        return cls(Points.plain(frequencies.codes), (((1, nothing),),) * frequencies.variables, 1)

    @classmethod
    def of(
        cls,
        frequencies: FrequencyVector,
        values: Sequence[Sequence[Hashable]],
        distances: Mapping[Hashable, Distance],
    ) -> Similarity:
        """Compose the distances of several variables.

        Parameters
        ----------
        frequencies : FrequencyVector
        values : sequence of sequences
            Values of each variable in the order of their codes.
        distances : mapping of name to Distance
            Distance of each variable; by default nominal with weight 1.

        Raises
        ------
        UnknownVariable
            If a name is not a variable.
        InvalidParameter
            If a distance does not define all values, or the distances add up to 32,768 or more.
        """
        unknown = [name for name in distances if name not in frequencies.names]
        if unknown:
            raise UnknownVariable(
                f"distances: expected names of variables, found {len(unknown)} others",
                variable=str(unknown[0]),
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
                "distances: expected a sum of the variables' largest distances of at most "
                f"{_LARGEST_DIAMETER}, found {points.diameter}. Reduce the weights"
            )
        largest = [levels[-1][0] for levels in coarser if levels[-1][0] > 0]
        return cls(points, tuple(coarser), min(largest, default=1))

    def at(self, members: np.ndarray) -> Similarity:
        """Return the distances of the combinations with the given position numbers."""
        coarser = tuple(tuple((cost, group[members]) for cost, group in each) for each in self.coarser)
        return Similarity(self.points.at(members), coarser, self.unit)


def similarity_of(coded: CodedFrame, distances: Mapping[Hashable, Distance]) -> Similarity:
    """Build the distances between the key combinations of a frame."""
    variables = range(coded.frequencies.variables)
    return Similarity.of(coded.frequencies, [coded.values(j) for j in variables], distances)


def _joined(codes: np.ndarray, parts: Sequence[Columns]) -> Points:
    """Concatenate the columns and cost matrices of all variables."""
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
