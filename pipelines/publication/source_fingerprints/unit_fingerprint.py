"""Units of two sources compared, under any name, specification or area.

The units with the smallest keys are the same sample in every file that contains them (bottom-k sampling,
Broder 1997; coordinated samples, Cohen and Kaplan 2007). Each sampled unit has a mark for every column: a
hash of its value. Two files have the same units if their common units agree in some column more often than
random units do. Two unrelated files may share running numbers as unit keys, but their units then agree in no
column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

#: Number of units in a fingerprint.
SIZE = 4096
#: Minimum number of common units for which two fingerprints are compared.
FEWEST = 8
#: Minimum agreement of the same units beyond chance, as a share of the largest possible one (kappa; Cohen
#: 1960).
AGREEMENT = 0.2
#: Minimum number of standard errors beyond chance: one false alarm in ten million pairs of files with 100
#: pairs of columns.
SIGNIFICANCE = 7.0


@dataclass(frozen=True)
class UnitFingerprint:
    """Sample of the units of a release.

    Attributes
    ----------
    units : (m,) uint64 array
        The smallest distinct halves of unit keys, sorted.
    marks : (m, p) uint64 array
        Hash of each unit's value in each column.
    size : int
        Number of units of the release.
    """

    units: np.ndarray
    marks: np.ndarray
    size: int


@dataclass(frozen=True)
class Similarity:
    """Result of comparing two unit fingerprints.

    Attributes
    ----------
    shared : int
        Number of units in both samples.
    share : float
        Estimated share of the smaller source's units that are in the other source.
    agreement : float
        Largest agreement beyond chance of any two columns.
    same : bool
        Whether both sources have the same units.
    """

    shared: int
    share: float
    agreement: float
    same: bool


def similarity(left: UnitFingerprint, right: UnitFingerprint) -> Similarity:
    """Compare two unit fingerprints.

    A unit whose key is below the smaller of both largest keys is in the sample of every file that contains
    the unit.
    """
    full = [each.size > len(each.units) for each in (left, right)]
    ends = [each.units[-1] for each, cut in zip((left, right), full, strict=True) if cut and len(each.units)]
    last = min(ends) if ends else np.uint64(2**64 - 1)
    common, i, j = np.intersect1d(left.units, right.units, assume_unique=True, return_indices=True)
    here = common <= last
    i, j, shared = i[here], j[here], int(here.sum())
    smaller = min(int((each.units <= last).sum()) for each in (left, right))
    share = shared / smaller if smaller else 0.0
    if shared < FEWEST:
        return Similarity(shared, share, 0.0, False)
    best, significant = 0.0, False
    for a in range(left.marks.shape[1]):
        for b in range(right.marks.shape[1]):
            kappa, sigmas = _beyond_chance(left.marks[i, a], right.marks[j, b])
            best = max(best, kappa)
            significant |= kappa >= AGREEMENT and sigmas >= SIGNIFICANCE
    return Similarity(shared, share, best, significant)


def _beyond_chance(left: np.ndarray, right: np.ndarray) -> tuple[float, float]:
    """Return the kappa of two columns over the same units, and the number of standard errors by which it
    exceeds 0.
    """
    n = len(left)
    values, counts = np.unique(left, return_counts=True)
    others, their = np.unique(right, return_counts=True)
    _, mine, theirs = np.intersect1d(values, others, assume_unique=True, return_indices=True)
    chance = float((counts[mine] * their[theirs]).sum()) / n**2
    agree = float((left == right).mean())
    if chance >= 1.0:
        return 0.0, 0.0
    # at least 1 / n, because with a probability near zero a single agreement would be significant
    error = math.sqrt(max(chance, 1.0 / n) * (1.0 - chance) / n)
    return (agree - chance) / (1.0 - chance), (agree - chance) / error if error else 0.0
