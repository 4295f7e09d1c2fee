"""Divide the primaries of a table into chunks whose results can be computed in parallel.

The size of a chunk is fixed. It does not depend on cores or partitions, so that neither do the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

#: Function that returns the results of a function for each of some chunks, in their order. The chunks, the
#: function and its results can be pickled.
Mapper = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]


def in_turn(function: Callable[[Any], Any], chunks: Sequence[Any]) -> list[Any]:
    """Return the results of a function for each chunk, computed one after the other in this process."""
    return [function(chunk) for chunk in chunks]


def chunks_of(cells: np.ndarray, size: int) -> list[np.ndarray]:
    """Split an array into parts of a fixed size; the last one may be shorter."""
    return [cells[start : start + size] for start in range(0, len(cells), size)]
