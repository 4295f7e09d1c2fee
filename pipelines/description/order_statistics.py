"""Exact order statistics of numbers that are read in parts, in bounded memory.

A sample gives a `Bracket` around the wanted number. A pass over the data that has another purpose counts the
numbers below the bracket and collects the numbers inside: 0.8 percent of all numbers, as a rank in a sample
of 100,000 has a standard deviation of at most 158. If the bracket misses the number, a wider one is used in a
further pass.

Source: Floyd and Rivest 1975.
"""

from __future__ import annotations

import math

import numpy as np

#: Sample size, and half the width of a bracket in standard deviations of a rank.
SAMPLED, WIDTH = 100_000, 3.0


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
        self._sample, self._place, self._number, self._width = sample, place, number, WIDTH
        self._begin()

    def widen(self) -> None:
        """Double the width of the bracket, and forget the numbers that were added."""
        self._width *= 2
        self._begin()

    def _begin(self) -> None:
        share, m = (self._place + 0.5) / self._number, len(self._sample)
        reach = self._width * math.sqrt(m * share * (1.0 - share)) + 1.0
        low, high = (math.floor(share * m + each) for each in (-reach, reach))
        self._low = self._sample[low] if low >= 0 else -math.inf
        self._high = self._sample[high] if high < m else math.inf
        self._below, self._lowest, self._highest = 0, 0, 0
        self._inside: list[np.ndarray] = []

    def add(self, numbers: np.ndarray) -> None:
        """Count the numbers below the bracket and at its ends, and collect the numbers inside it."""
        from_low = numbers[numbers >= self._low]
        self._below += len(numbers) - len(from_low)
        near = from_low[from_low <= self._high]
        inside = near[(near > self._low) & (near < self._high)]
        at_low = int(np.count_nonzero(near == self._low))
        self._lowest += at_low
        self._highest += len(near) - len(inside) - at_low
        self._inside.append(inside)

    def found(self) -> float | None:
        """Return the number at the rank; None if it is outside the bracket."""
        place, held = self._place - self._below, sum(map(len, self._inside))
        if place < 0 or place >= self._lowest + held + self._highest:
            return None
        if place < self._lowest:
            return float(self._low)
        place -= self._lowest
        if place >= held:
            return float(self._high)
        return float(np.partition(np.concatenate(self._inside), place)[place])
