"""Levels of regions, such as municipality, district and state, which control tables can refer to."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from microguard.sdc.errors import InvalidParameter, ShapeMismatch, UnknownVariable
from microguard.sdc.nominal.frequency import FrequencyVector

#: Default name of the region level in control tables.
REGION = "region"


@dataclass(frozen=True)
class RegionLevels:
    """Nested levels of regions, finest first: each region belongs to one region of every coarser level.

    Attributes
    ----------
    names : tuple of labels
        Names of the levels in control tables.
    codes : (levels, regions) int64 array
        Region of each level that contains a region of the finest level; the first row is 0, 1, 2, ...
    """

    names: tuple[Hashable, ...]
    codes: np.ndarray

    def __post_init__(self) -> None:
        if self.codes.ndim != 2 or len(self.names) != len(self.codes) or not self.names:
            raise ShapeMismatch(
                f"region levels: expected codes of shape ({len(self.names)}, regions), found "
                f"{self.codes.shape}"
            )
        if len(set(self.names)) != len(self.names):
            raise UnknownVariable("region levels: expected distinct names, found a repeated one. Rename it")

    @classmethod
    def single(cls, regions: int, name: Hashable = REGION) -> RegionLevels:
        """Return a single level that consists of the regions themselves."""
        return cls((name,), np.arange(regions)[None, :])

    @classmethod
    def of(cls, frame: pd.DataFrame) -> tuple[RegionLevels, np.ndarray]:
        """Build levels from the columns of a frame, finest first, and return each record's finest region.

        Raises
        ------
        InvalidParameter
            If a record has no region, or a region is part of two regions of a coarser level.
        """
        if frame.isna().to_numpy().any():
            raise InvalidParameter(
                "region levels: expected a region at every level for each record, found a record without one"
            )
        coded = [pd.factorize(frame.iloc[:, j], sort=True)[0] for j in range(frame.shape[1])]
        first = np.unique(coded[0], return_index=True)[1]
        codes = np.array([level[first] for level in coded], np.int64)
        for level, values in enumerate(coded):
            if (codes[level][coded[0]] != values).any():
                raise InvalidParameter(
                    "region levels: expected each region inside one region of a coarser level, found one "
                    "in two. Order the levels from fine to coarse",
                    variable=str(frame.columns[level]),
                )
        return cls(tuple(frame.columns), codes), coded[0].astype(np.int32)

    def of_combinations(self, frequencies: FrequencyVector, name: Hashable) -> tuple[np.ndarray, int]:
        """Return the region of each key combination at a level, (m,), and the level's number of regions."""
        level = self.codes[self.names.index(name)]
        return level[frequencies.region_of()], int(level.max(initial=-1)) + 1

    def tables(self, frequencies: FrequencyVector, dimension: int) -> tuple[tuple[Hashable, ...], ...]:
        """Return the tables of each region level with 1 to `dimension` variables."""
        if isinstance(dimension, bool) or not isinstance(dimension, int | np.integer) or dimension < 0:
            raise InvalidParameter(
                f"region_dimension: expected a number of variables (0 for none), found {dimension!r}"
            )
        highest = min(int(dimension), frequencies.variables)
        return tuple(
            (level, *names)
            for level in self.names
            for size in range(1, highest + 1)
            for names in combinations(frequencies.names, size)
        )
