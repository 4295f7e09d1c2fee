"""A pseudo-random sequence for compiled loops: SplitMix64 (Steele, Lea and Flood 2014).

The state is a (1,) uint64 array owned by the caller, so that a run depends on nothing but its seed.
"""

from __future__ import annotations

import numpy as np

from sdc.kernels import kernel

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11))
_UNIT = 2.0**-53


def sequence(seed: int, stream: int = 0) -> np.ndarray:
    """State of a new sequence; different streams of one seed are independent for our purposes."""
    return np.random.SeedSequence([seed, stream]).generate_state(1, np.uint64)


@kernel
def uniform(state):
    """Next number, uniform in [0, 1)."""
    state[0] += _STEP
    z = state[0]
    z = (z ^ (z >> _SHIFTS[0])) * _FIRST
    z = (z ^ (z >> _SHIFTS[1])) * _SECOND
    z = z ^ (z >> _SHIFTS[2])
    return (z >> _SHIFTS[3]) * _UNIT
