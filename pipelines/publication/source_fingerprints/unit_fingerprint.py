"""Fingerprints of a source: the same units found again under another name, specification or area.

The units whose keys are smallest are the same sample of every file that holds them (bottom-k sampling, Broder
1997; coordinated samples, Cohen and Kaplan 2007). Each sampled unit carries a mark of its value in every
column. Two files speak of the same units where the units they share agree in some column more often than
units drawn at random do: running numbers that two unrelated files share do not agree in anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

#: Units of a fingerprint.
SIZE = 4096
#: Units that two fingerprints must share before anything is said of them.
FEWEST = 8
#: Agreement beyond chance, as a share of what chance leaves (Cohen's kappa 1960), that makes units the same.
AGREEMENT = 0.2
#: Standard errors beyond chance: of ten million pairs of files with a hundred pairs of columns, one alarm.
SIGNIFICANCE = 7.0


@dataclass(frozen=True)
class UnitFingerprint:
    """A sample of the units of a release.

    Attributes
    ----------
    units : (m,) uint64 array
        The smallest halves of unit keys, sorted, each once.
    marks : (m, p) uint64 array
        Hash of each unit's value in each column.
    size : int
        Units of the release.
    """

    units: np.ndarray
    marks: np.ndarray
    size: int


@dataclass(frozen=True)
class Similarity:
    """What two fingerprints say of their sources.

    Attributes
    ----------
    shared : int
        Units in both samples.
    share : float
        Estimated share of the smaller source's units that are in the other.
    agreement : float
        The largest agreement beyond chance of any two columns.
    same : bool
        Whether they speak of the same units.
    """

    shared: int
    share: float
    agreement: float
    same: bool


def similarity(left: UnitFingerprint, right: UnitFingerprint) -> Similarity:
    """Compare two fingerprints.

    A unit below the smaller of both largest keys is in the sample of every file that holds it.
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
    """Kappa of two columns over the same units, and how many standard errors it is above none."""
    n = len(left)
    values, counts = np.unique(left, return_counts=True)
    others, their = np.unique(right, return_counts=True)
    _, mine, theirs = np.intersect1d(values, others, assume_unique=True, return_indices=True)
    chance = float((counts[mine] * their[theirs]).sum()) / n**2
    agree = float((left == right).mean())
    if chance >= 1.0:
        return 0.0, 0.0
    # A chance of nearly none would make one coincidence significant: at least one in n is allowed for.
    error = math.sqrt(max(chance, 1.0 / n) * (1.0 - chance) / n)
    return (agree - chance) / (1.0 - chance), (agree - chance) / error if error else 0.0
