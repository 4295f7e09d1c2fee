"""Published classes of one clustering of a release, and the units in each class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Classes:
    """Published information of one clustering of a release; units are numbered over all releases.

    Attributes
    ----------
    release : str
        Id of the release.
    k : int
        Guaranteed minimum number of units of a class.
    variables : tuple of str
        Protected variables of the clustering. Releases that protect the same variables are audited together.
    unit : (n,) int64 array
        Unit of each published record; equal numbers are the same unit in all releases.
    class_of : (n,) int64 array
        Class of each record, 0 to c - 1.
    region : (c,) int64 array
        Region of each class, numbered over all releases.
    means : mapping of variable to (c,) float array
        Published means of each class. A reader knows the product of mean and size, which is a sum.
    rounding : mapping of variable to float
        Unit to which the means are rounded; 0 if they are not rounded.
    sensitive : mapping of variable to (n,) int64 array
        Value of each record, coded over all releases.
    record : (n,) int64 array
        Version of each record: the number of the unit, or a new number if a corrected unit was published
        again.
    weight : (n,) float array
        Weight of each record in the means, which follows from the published weights.
    values : mapping of variable to (n,) int64 array
        Code of the unit and its original value over all releases, for means of variables for which the map of
        members has hashes of original values (series with corrections).
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
            raise ValueError("units, versions, classes and weights: expected one of each per record")

    def __len__(self) -> int:
        """Return the number of classes."""
        return len(self.region)

    @property
    def sizes(self) -> np.ndarray:
        """Return the number of records in each class, (c,)."""
        return np.bincount(self.class_of, minlength=len(self))
