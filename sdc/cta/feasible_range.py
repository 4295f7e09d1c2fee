"""How far a cell may have moved, as far as rule, parameters and published value tell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from microguard.sdc.cta.table.cell_table import CellTable

#: A share at which a fall is still read as a share: beyond it next to nothing is left of the published value.
_LARGEST_FALL = 0.95


@dataclass(frozen=True, eq=False)
class Reach:
    """Possible deviations, (cells,) each and none negative: two bands of a sensitive cell, one of others.

    Attributes
    ----------
    up_least, up_most : rises; the least is 0 for cells that are not sensitive
    down_least, down_most : falls
    """

    up_least: np.ndarray
    up_most: np.ndarray
    down_least: np.ndarray
    down_most: np.ndarray


def possible_reach(
    table: CellTable, published: np.ndarray, *, largest_factor: float, relative: bool
) -> Reach:
    """Bands from levels and capacities, wide enough to hold the actual deviations and their rounding.

    With `relative`, a cell that rose by a share s of its original shows t with a rise of t s / (1 + s), one
    that fell by it a fall of t s / (1 - s): so the rule reads to an attacker, who has t and not the original.
    """
    s = table.sensitive
    up_most, down_most = table.upper_capacity.copy(), table.lower_capacity.copy()
    up_most[s] = np.minimum(up_most[s], largest_factor * table.upper_protection[s])
    down_most[s] = np.minimum(down_most[s], largest_factor * table.lower_protection[s])
    up_least = np.where(s, np.minimum(table.upper_protection, up_most), 0.0)
    down_least = np.where(s, np.minimum(table.lower_protection, down_most), 0.0)
    if relative:
        up_least, up_most = (_rise(table.values, published, a) for a in (up_least, up_most))
        down_least, down_most = (_fall(table.values, published, a) for a in (down_least, down_most))
        if table.whole:  # levels were rounded up, capacities down
            up_least, down_least = np.maximum(up_least - 1, 0.0), np.maximum(down_least - 1, 0.0)
            up_most, down_most = (np.where(a > 0, a + 1, 0.0) for a in (up_most, down_most))
    deviations = published - table.values
    up, down = np.maximum(deviations, 0.0), np.maximum(-deviations, 0.0)
    if not np.any(table.values < 0):  # nothing was below zero, and everybody knows
        up_most = np.minimum(up_most, np.maximum(published, up))
    return Reach(
        up_least=np.where(up > 0, np.minimum(up_least, up), up_least),
        up_most=np.maximum(up_most, up),
        down_least=np.where(down > 0, np.minimum(down_least, down), down_least),
        down_most=np.maximum(down_most, down),
    )


def _rise(values: np.ndarray, published: np.ndarray, amount: np.ndarray) -> np.ndarray:
    share, is_share = _share(values, amount)
    return np.where(is_share, np.abs(published) * share / (1 + share), amount)


def _fall(values: np.ndarray, published: np.ndarray, amount: np.ndarray) -> np.ndarray:
    share, is_share = _share(values, amount)
    read = np.abs(published) * share / (1 - np.minimum(share, _LARGEST_FALL))
    return np.where(is_share & (share < _LARGEST_FALL), read, amount)


def _share(values: np.ndarray, amount: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(cells,) amounts as shares of the values, and whether they are: none is of a balance of 0."""
    sizes = np.abs(values)
    is_share = (sizes > 0) & np.isfinite(amount)
    return np.where(is_share, amount / np.where(sizes > 0, sizes, 1.0), 0.0), is_share
