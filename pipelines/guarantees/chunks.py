"""Divide the cells of a large table into chunks whose results can be computed in parallel.

The size of a chunk is fixed. It does not depend on cores or partitions, so that neither do the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

#: Function that returns the results of a function for each of some chunks, in their order.
Mapper = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]


def in_turn(function: Callable[[Any], Any], chunks: Sequence[Any]) -> list[Any]:
    """Return the results of a function for each chunk, computed one after the other in this process."""
    return [function(chunk) for chunk in chunks]


def chunks_of(items: np.ndarray | Sequence[Any], size: int) -> list[Any]:
    """Split an array or a sequence into parts of a fixed size; the last one may be shorter."""
    return [items[start : start + size] for start in range(0, len(items), size)]
