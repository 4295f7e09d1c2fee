"""The classes of one clustering of one release, and who is in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Classes:
    """What one clustering of a release tells a reader, with the units numbered over all releases.

    Attributes
    ----------
    release : str
        Id of the release.
    k : int
        Least number of units of a class that the release promises.
    variables : tuple of str
        Protected variables of the clustering; releases that protect the same ones are compared as a whole.
    unit : (n,) int64 array
        Unit of each published record; equal numbers are the same unit in every release.
    class_of : (n,) int64 array
        Class of each record, 0 to c - 1.
    region : (c,) int64 array
        Region of each class, numbered over all releases.
    means : mapping of variable to (c,) float array
        What is published for a class, where it is a mean: mean times size is a sum that a reader knows.
    rounding : mapping of variable to float
        Unit that the means are rounded to; 0 where they are not.
    sensitive : mapping of variable to (n,) int64 array
        Value of each record, coded over all releases.
    record : (n,) int64 array
        What the values belong to: the unit, or, where a corrected unit was published again, its version.
    weight : (n,) float array
        What each record counts for in the means: a reader who has the published weights knows it.
    values : mapping of variable to (n,) int64 array
        Where corrected units were published again: the unit and its value before protection, coded over all
        releases, of means of which that is known.
    """

    release: str
    k: int
    variables: tuple[str, ...]
    unit: np.ndarray
    class_of: np.ndarray
    region: np.ndarray
    means: Mapping[str, np.ndarray] = field(default_factory=dict)
    rounding: Mapping[str, float] = field(default_factory=dict)
    sensitive: Mapping[str, np.ndarray] = field(default_factory=dict)
    record: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    weight: np.ndarray = field(default_factory=lambda: np.zeros(0))
    values: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not len(self.record):
            object.__setattr__(self, "record", self.unit)
        if not len(self.weight):
            object.__setattr__(self, "weight", np.ones(len(self.unit)))
        if not len(self.unit) == len(self.class_of) == len(self.record) == len(self.weight):
            raise ValueError("every record has one unit, one version, one class and one weight")

    def __len__(self) -> int:
        """Number of classes."""
        return len(self.region)

    @property
    def sizes(self) -> np.ndarray:
        """Records of each class, (c,)."""
        return np.bincount(self.class_of, minlength=len(self))
