"""Regions and what they add up to: municipality, district, state. Control tables may name every level."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from microguard.sdc.errors import InvalidParameter, ShapeMismatch, UnknownVariable
from microguard.sdc.nominal.frequency import FrequencyVector

#: Name by which a table refers to regions that were given no other.
REGION = "region"


@dataclass(frozen=True)
class RegionLevels:
    """Levels of regions, finest first; each region lies in one region of every coarser level.

    Attributes
    ----------
    names : tuple of labels
        Names of the levels; control tables refer to regions by them.
    codes : (levels, regions) int64 array
        Region of each level that a region of the finest lies in; the first row is 0, 1, 2, ...
    """

    names: tuple[Hashable, ...]
    codes: np.ndarray

    def __post_init__(self) -> None:
        if self.codes.ndim != 2 or len(self.names) != len(self.codes) or not self.names:
            raise ShapeMismatch(f"{len(self.names)} names of levels for codes of shape {self.codes.shape}")
        if len(set(self.names)) != len(self.names):
            raise UnknownVariable("two levels of regions have one name; rename one")

    @classmethod
    def single(cls, regions: int, name: Hashable = REGION) -> RegionLevels:
        """One level: the regions themselves."""
        return cls((name,), np.arange(regions)[None, :])

    @classmethod
    def of(cls, frame: pd.DataFrame) -> tuple[RegionLevels, np.ndarray]:
        """Levels from the columns of a frame, finest first, and the finest region of each record, (n,).

        Raises
        ------
        InvalidParameter
            A record without a region, or a region that lies in two of a coarser level.
        """
        if frame.isna().to_numpy().any():
            raise InvalidParameter("a record has no region; expected one at every level")
        coded = [pd.factorize(frame.iloc[:, j], sort=True)[0] for j in range(frame.shape[1])]
        first = np.unique(coded[0], return_index=True)[1]
        codes = np.array([level[first] for level in coded], np.int64)
        for level, values in enumerate(coded):
            if (codes[level][coded[0]] != values).any():
                raise InvalidParameter(
                    "a region lies in two regions of a coarser level; name levels finest first",
                    variable=str(frame.columns[level]),
                )
        return cls(tuple(frame.columns), codes), coded[0].astype(np.int32)

    def of_combinations(self, frequencies: FrequencyVector, name: Hashable) -> tuple[np.ndarray, int]:
        """Region at a level of each combination, (m,), and the number of regions of the level."""
        level = self.codes[self.names.index(name)]
        return level[frequencies.region_of()], int(level.max(initial=-1)) + 1

    def tables(self, frequencies: FrequencyVector, dimension: int) -> tuple[tuple[Hashable, ...], ...]:
        """Region by every table of up to so many variables, at every level."""
        if isinstance(dimension, bool) or not isinstance(dimension, int | np.integer) or dimension < 0:
            raise InvalidParameter(f"region_dimension is a number of variables, 0 for none: {dimension!r}")
        highest = min(int(dimension), frequencies.variables)
        return tuple(
            (level, *names)
            for level in self.names
            for size in range(1, highest + 1)
            for names in combinations(frequencies.names, size)
        )
