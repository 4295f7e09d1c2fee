"""Compute the deviations that an attacker considers possible for each cell of a published table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.table.cell_table import CellTable

#: Maximum relative decrease that is converted to a share of the published value. After a larger decrease the
#: published value is close to zero, and the share would be unbounded.
_LARGEST_DECREASE = 0.95


@dataclass(frozen=True, eq=False)
class DeviationIntervals:
    """Possible deviations of each cell: one interval upwards and one downwards.

    All arrays are (cells,) and not negative. The intervals of cells that are not sensitive begin at 0, so
    that they form a single interval.

    Attributes
    ----------
    up_least, up_most : smallest and largest increase
    down_least, down_most : smallest and largest decrease
    """

    up_least: np.ndarray
    up_most: np.ndarray
    down_least: np.ndarray
    down_most: np.ndarray


def possible_deviations(
    table: CellTable, published: np.ndarray, *, largest_factor: float, relative: bool
) -> DeviationIntervals:
    """Derive the intervals of possible deviations from protection levels and capacities.

    The intervals always contain the actual deviations.

    Parameters
    ----------
    table : CellTable
    published : (cells,) adjusted values
    largest_factor : float
        Largest deviation of a sensitive cell, in units of its protection level.
    relative : bool
        Whether levels are shares of the original value. An attacker knows only the published value t: an
        increase by a share s of the original value is t s / (1 + s), a decrease is t s / (1 - s).
    """
    s = table.sensitive
    up_most, down_most = table.upper_capacity.copy(), table.lower_capacity.copy()
    up_most[s] = np.minimum(up_most[s], largest_factor * table.upper_protection[s])
    down_most[s] = np.minimum(down_most[s], largest_factor * table.lower_protection[s])
    up_least = np.where(s, np.minimum(table.upper_protection, up_most), 0.0)
    down_least = np.where(s, np.minimum(table.lower_protection, down_most), 0.0)
    if relative:
        up_least, up_most = (_increase(table.values, published, a) for a in (up_least, up_most))
        down_least, down_most = (_decrease(table.values, published, a) for a in (down_least, down_most))
        if table.whole:  # protection levels were rounded up, capacities down
            up_least, down_least = np.maximum(up_least - 1, 0.0), np.maximum(down_least - 1, 0.0)
            up_most, down_most = (np.where(a > 0, a + 1, 0.0) for a in (up_most, down_most))
    deviations = published - table.values
    up, down = np.maximum(deviations, 0.0), np.maximum(-deviations, 0.0)
    if not np.any(table.values < 0):  # attackers know that no original value is negative
        up_most = np.minimum(up_most, np.maximum(published, up))
    return DeviationIntervals(
        up_least=np.where(up > 0, np.minimum(up_least, up), up_least),
        up_most=np.maximum(up_most, up),
        down_least=np.where(down > 0, np.minimum(down_least, down), down_least),
        down_most=np.maximum(down_most, down),
    )


def _increase(values: np.ndarray, published: np.ndarray, amount: np.ndarray) -> np.ndarray:
    share, is_share = _share(values, amount)
    return np.where(is_share, np.abs(published) * share / (1 + share), amount)


def _decrease(values: np.ndarray, published: np.ndarray, amount: np.ndarray) -> np.ndarray:
    share, is_share = _share(values, amount)
    inferred = np.abs(published) * share / (1 - np.minimum(share, _LARGEST_DECREASE))
    return np.where(is_share & (share < _LARGEST_DECREASE), inferred, amount)


def _share(values: np.ndarray, amount: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return amounts as shares of the values, (cells,), and for each cell whether its value is not 0, so that
    the share exists.
    """
    sizes = np.abs(values)
    is_share = (sizes > 0) & np.isfinite(amount)
    return np.where(is_share, amount / np.where(sizes > 0, sizes, 1.0), 0.0), is_share
