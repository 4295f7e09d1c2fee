"""Random numbers inside kernels: SplitMix64 (Steele, Lea and Flood 2014), one uint64 of state.

Numba's own generator is global to the process. Each run has a separate stream, so two runs cannot interfere.
"""

from __future__ import annotations

import numpy as np
from microguard.sdc.kernels.compile import borrowing

_DOUBLE = 1.0 / (1 << 53)


def new_stream(*seeds: int) -> np.ndarray:
    """Return the state of a new stream, (1,) uint64, seeded by non-negative integers."""
    return np.random.SeedSequence(seeds).generate_state(1, np.uint64)


@borrowing
def next_bits(state: np.ndarray) -> np.uint64:
    """Return the next 64 random bits."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@borrowing
def integer_below(state: np.ndarray, bound: int) -> int:
    """Return a random integer from 0 to bound - 1; bound < 2**31 keeps the modulo bias below 2**-22."""
    return int(np.int64((next_bits(state) >> np.uint64(11)) % np.uint64(bound)))


@borrowing
def uniform(state: np.ndarray) -> float:
    """Return a random number in [0, 1)."""
    return (next_bits(state) >> np.uint64(11)) * _DOUBLE
