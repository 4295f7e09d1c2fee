"""Exact order statistics of numbers that are read in parts, in bounded memory.

A sample gives a `Bracket` around the wanted number. A pass over the data that has another purpose counts the
numbers below the bracket and collects the numbers inside. If the bracket misses the number or contains too
many numbers, `order_statistics` reads the data again. The bits of a double, read as an integer, have the
order of the numbers. A pass counts the numbers by their first bits. Each further pass counts by more bits
among the numbers that share the first bits of the wanted number. When few numbers are left, a last pass
collects and sorts them (radix selection).

Sources: Floyd and Rivest 1975 (sample); Knuth 1998, section 5.2.5 (radix).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

#: Maximum number of numbers that are collected in memory for sorting.
COLLECTED = 500_000
#: Sample size, and half the width of a bracket in standard deviations of a rank.
SAMPLED, WIDTH = 100_000, 3.0
#: Number of bits that one counting pass resolves.
BITS = 16
_SIGN = np.uint64(1 << 63)
_LEVELS = 64 // BITS

Parts = Callable[[], Iterable[np.ndarray]]


class Bracket:
    """Search for the number at a rank within a bracket derived from a sample.

    Parameters
    ----------
    sample : (m,) float array
        Sorted; at least one number.
    place, number : int
        The rank from 0, and the total number of numbers.
    """

    def __init__(self, sample: np.ndarray, place: int, number: int) -> None:
        share, m = (place + 0.5) / number, len(sample)
        reach = WIDTH * math.sqrt(m * share * (1.0 - share)) + 1.0
        low, high = (int(share * m + each) for each in (-reach, reach))
        self._low, self._high = sample[max(low, 0)], sample[min(high, m - 1)]
        self._place, self._below, self._lowest, self._highest = place, 0, 0, 0
        self._inside: list[np.ndarray] | None = []
        self._held = 0

    def add(self, numbers: np.ndarray) -> None:
        """Count the numbers below the bracket and at its ends, and collect the numbers inside it."""
        from_low = numbers[numbers >= self._low]
        self._below += len(numbers) - len(from_low)
        near = from_low[from_low <= self._high]
        inside = near[(near > self._low) & (near < self._high)]
        at_low = int(np.count_nonzero(near == self._low))
        self._lowest += at_low
        self._highest += len(near) - len(inside) - at_low
        self._held += len(inside)
        if self._inside is not None:
            self._inside = [*self._inside, inside] if self._held <= COLLECTED else None

    def found(self) -> float | None:
        """Return the number at the rank; None if it is outside the bracket or the bracket has too many
        numbers.
        """
        place = self._place - self._below
        if place < 0 or self._inside is None or place >= self._lowest + self._held + self._highest:
            return None
        if place < self._lowest:
            return float(self._low)
        place -= self._lowest
        if place >= self._held:
            return float(self._high)
        return float(np.partition(np.concatenate(self._inside), place)[place])


def order_statistics(parts: Parts, places: Sequence[int]) -> tuple[float, ...]:
    """Return the numbers that have the given ranks in ascending order.

    Parameters
    ----------
    parts : callable
        Returns the same (m,) float arrays at each call; all numbers are finite, and there are at most 2^63.
    places : sequence of int
        Ranks from 0, each smaller than the number of numbers.
    """
    # first bits, and rank among the numbers with these bits
    wanted = {place: (np.uint64(0), place) for place in places}
    found: dict[int, float] = {}
    for level in range(_LEVELS):
        counts = _counted(parts, {prefix for prefix, _ in wanted.values()}, level)
        few: dict[int, tuple[np.uint64, int]] = {}
        for place, (prefix, left) in list(wanted.items()):
            until = np.cumsum(counts[prefix])
            bucket = int(np.searchsorted(until, left, side="right"))
            among = left - int(until[bucket] - counts[prefix][bucket])
            wanted[place] = (prefix << np.uint64(BITS)) | np.uint64(bucket), among
            if counts[prefix][bucket] <= COLLECTED:
                few[place] = wanted.pop(place)
        if level + 1 < _LEVELS:
            found |= _collected(parts, few, level + 1)
        else:
            found |= {place: _number(prefix) for place, (prefix, _) in (few | wanted).items()}
        if not wanted:
            break
    return tuple(found[place] for place in places)


def _counted(parts: Parts, prefixes: set[np.uint64], level: int) -> dict[np.uint64, np.ndarray]:
    """Count the numbers with each prefix, by the next `BITS` bits."""
    counts = {prefix: np.zeros(1 << BITS, np.int64) for prefix in prefixes}
    shift = np.uint64(64 - BITS * (level + 1))
    for part in parts():
        keys = _keys(part) >> shift
        for prefix, of_prefix in counts.items():
            there = keys if level == 0 else keys[keys >> np.uint64(BITS) == prefix]
            following = (there & np.uint64((1 << BITS) - 1)).astype(np.int64)
            of_prefix += np.bincount(following, minlength=1 << BITS)
    return counts


def _collected(parts: Parts, few: dict[int, tuple[np.uint64, int]], level: int) -> dict[int, float]:
    """Collect the numbers with each prefix, and return the number at each rank among them."""
    if not few:
        return {}
    shift = np.uint64(64 - BITS * level)
    there: dict[np.uint64, list[np.ndarray]] = {prefix: [] for prefix, _ in few.values()}
    for part in parts():
        keys = _keys(part)
        first = keys >> shift
        for prefix, of_prefix in there.items():
            of_prefix.append(keys[first == prefix])
    keys_of = {prefix: np.concatenate(each) for prefix, each in there.items()}
    return {
        place: _number(np.partition(keys_of[prefix], left)[left]) for place, (prefix, left) in few.items()
    }


def _keys(numbers: np.ndarray) -> np.ndarray:
    """Return integers, (m,) uint64, that sort in the same order as the numbers."""
    bits = np.ascontiguousarray(numbers, np.float64).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _number(key: np.uint64) -> float:
    """Return the number that belongs to a key."""
    bits = key ^ _SIGN if key & _SIGN else ~key
    return float(np.array([bits], np.uint64).view(np.float64)[0])
