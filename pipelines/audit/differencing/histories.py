"""Histories: sets of units that a reader of all releases cannot distinguish.

The history of a unit is the set of its classes in all releases. Units with the same history are in the same
classes of every release. A history that fewer than k units share is therefore equivalent to a class of fewer
than k units (correspondence attacks: Fung, Wang, Fu and Pei 2008; m-invariance: Xiao and Tao 2007).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from microguard.pipelines.audit.differencing.classes import Classes


@dataclass(frozen=True)
class Histories:
    """Histories of the units over several releases.

    Attributes
    ----------
    history_of : (members,) int64 array
        History of each unit (or record), -1 if it is in no release.
    sizes : (h,) int64 array
        Number of units (or records) with each history.
    k : (h,) int64 array
        The largest k among the releases of each history.
    """

    history_of: np.ndarray
    sizes: np.ndarray
    k: np.ndarray

    def __len__(self) -> int:
        """Return the number of histories."""
        return len(self.sizes)

    @property
    def exposed(self) -> np.ndarray:
        """Return whether each history has fewer units than the k of one of its releases, (h,) bool."""
        return self.sizes < self.k


def histories(releases: Sequence[Classes], members: int, *, by_record: bool = False) -> Histories:
    """Compute the histories of all units, or of all record versions.

    Each set of classes is represented by two 64-bit hashes.

    Parameters
    ----------
    releases : sequence of Classes
    members : int
        Number of units (or records), which are numbered from 0.
    by_record : bool
        Whether to distinguish the versions of a corrected unit, because their values differ.
    """
    hashes = np.zeros((2, members), np.uint64)
    k = np.zeros(members, np.int64)
    for position, release in enumerate(releases):
        member, class_of = _pairs(release.record if by_record else release.unit, release.class_of)
        identity = class_of.astype(np.uint64) + (np.uint64(position + 1) << np.uint64(40))
        for row in range(2):
            np.add.at(hashes[row], member, mix_bits(identity, row))
        k[member] = np.maximum(k[member], release.k)
    present = np.flatnonzero(k)
    order = present[np.argsort(hashes[0, present])]
    fresh = _fresh(hashes[0, order])
    apart = _fresh(hashes[1, order])
    if (apart & ~fresh).any():  # two sets have equal first hashes once in a hundred million sources
        order = present[np.lexsort((hashes[1, present], hashes[0, present]))]
        fresh = _fresh(hashes[0, order]) | _fresh(hashes[1, order])
    of = np.full(members, -1, np.int64)
    of[order] = np.cumsum(fresh) - 1
    first = order[fresh]
    return Histories(of, np.bincount(of[present], minlength=len(first)), k[first])


def mix_bits(numbers: np.ndarray, salt: int) -> np.ndarray:
    """Return a 64-bit hash of each number (SplitMix64; Steele, Lea and Flood 2014).

    The sum of the hashes of a set's members identifies the set.
    """
    bits = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15 * (2 * salt + 1) & (2**64 - 1))
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def distinct_pairs(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct pairs of non-negative numbers, sorted."""
    width = int(right.max(initial=0)) + 1
    pairs = np.sort(left.astype(np.int64) * width + right)
    pairs = pairs[_fresh(pairs)]
    return pairs // width, pairs % width


def _pairs(member: np.ndarray, class_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct pairs of member and class; a unit may have several records in one class."""
    if np.bincount(member).max(initial=0) <= 1:
        return member, class_of
    return distinct_pairs(member, class_of)


def _fresh(ordered: np.ndarray) -> np.ndarray:
    """Return for each value of a sorted array whether it is the first of its kind, (n,) bool."""
    fresh = np.ones(len(ordered), bool)
    fresh[1:] = ordered[1:] != ordered[:-1]
    return fresh
