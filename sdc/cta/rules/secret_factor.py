"""Secret factors, one per cell, that multiply the protection levels.

Optimal deviations lie exactly at a level, so an attacker who knows the rule has only two candidates for the
original value. A factor drawn per cell from a secret key turns each candidate into a band. The bands are
wide: with `spread` 1 an attacker who knows the direction of a change and guesses the middle of the band knows
the value only to within the protected percentage.

Two numbers are drawn per cell: its level, between the level of the rule and `LARGEST_DRAWN_LEVEL` times it,
and the position of the deviation between that level and the end of the band. The rule's level of a cell with
too few contributors is a known share of its value; the drawn level is unknown. Both numbers depend on the key
and on the identity of the cell. The identity must contain everything that distinguishes the cell from cells
an attacker may know (period, measure, contributors). Otherwise he computes the shared factor from a known
cell and applies it to the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from microguard.sdc.cta.rules.keyed_draw import keyed_numbers
from microguard.sdc.cta.table.cell_table import CellTable
from microguard.sdc.errors import InvalidParameter, ShapeMismatch

#: Maximum level, as a share of the cell's value, that determines the width of a band. A larger level protects
#: the value without a band, and a wider band would exceed the capacities of any table.
LARGEST_SHARE = 0.5
#: Maximum decrease of a sensitive cell as a share of its value, unless its level is larger.
LARGEST_FALL = 0.6
#: Largest possible upward factor: at the largest share and with a spread of 1.
LARGEST_FACTOR = 7.0
#: Largest drawn level as a multiple of the rule's level, if the band is at least twice as wide. With a
#: multiple of 1 an attacker would know the level.
LARGEST_DRAWN_LEVEL = 1.5
_FACTOR, _LEVEL = b"microguard/cta/protection-factor", b"microguard/cta/protection-level"


@dataclass(frozen=True, eq=False)
class Spread:
    """Maximum factor of each cell's lower and upper level, (cells,) each; the minimum factor is 1."""

    lower: np.ndarray
    upper: np.ndarray


def largest_factors(table: CellTable, spread: float) -> Spread:
    """Compute the largest factors.

    A band then extends from its middle to either side by `spread` times the protected share of the middle.

    Let p be the level divided by the value and s the spread. If the value rises by p to p F, the original of
    a published t is between t/(1+p) and t/(1+pF). Half the width of this interval, divided by its middle, is
    s p if 1+pF = (1+p)(1+sp)/(1-sp). The formula for decreases is analogous.
    """
    if not 0 <= spread <= 1:
        raise InvalidParameter("spread: expected a number from 0 to 1")
    sizes = np.abs(table.values)

    def share(level: np.ndarray) -> np.ndarray:
        given = level > 0
        of_value = level / np.where(given, np.maximum(sizes, level), 1.0)  # avoids a division by 0
        return np.where(given, np.minimum(of_value, LARGEST_SHARE), 1e-9)

    p, q = share(table.lower_protection), share(table.upper_protection)
    upper = ((1 + q) * (1 + spread * q) / (1 - spread * q) - 1) / q
    lower = (1 - (1 - p) * (1 - spread * p) / (1 + spread * p)) / p
    return Spread(np.maximum(lower, 1.0), np.maximum(upper, 1.0))


def secret_factors(key: bytes, identities: Sequence[str], largest: np.ndarray) -> np.ndarray:
    """Draw the factor of each level: uniform between the drawn level and the largest factor.

    Parameters
    ----------
    key, identities : see `keyed_numbers`
    largest : (cells,) largest factors, from `Spread`

    Returns
    -------
    (cells,) array
        From 1 to `largest`.
    """
    span = np.minimum(LARGEST_DRAWN_LEVEL - 1, (largest - 1) / 2)
    level = 1 + span * keyed_numbers(key, _LEVEL, identities)
    return np.asarray(level + (largest - level) * keyed_numbers(key, _FACTOR, identities))


def with_room_for_factors(table: CellTable, spread: float) -> CellTable:
    """Widen the capacities of sensitive cells so that every possible factor is feasible.

    A direction without capacity for the level of the rule gets no capacity for the drawn level. A sensitive
    cell decreases by at most the share `LARGEST_FALL` of its value unless its factor requires more, because a
    cell published as zero reveals its direction.
    """
    factors, directed = largest_factors(table, spread), table.sensitive
    upper, lower = factors.upper * table.upper_protection, factors.lower * table.lower_protection
    if table.whole:
        upper, lower = np.ceil(upper), np.ceil(lower)
    fall = np.minimum(table.lower_capacity, np.floor(LARGEST_FALL * np.abs(table.values)))
    return replace(
        table,
        upper_capacity=np.where(
            directed & table.can_rise, np.maximum(table.upper_capacity, upper), table.upper_capacity
        ),
        lower_capacity=np.where(directed & table.can_fall, np.maximum(fall, lower), table.lower_capacity),
    )


def with_secret_levels(table: CellTable, key: bytes, identities: Sequence[str], spread: float) -> CellTable:
    """Multiply the levels of each sensitive cell by its factor; in tables of whole numbers, round the
    products up.

    A direction that has capacity for the level of the rule gets capacity for the drawn level.
    """
    if len(identities) != table.cells:
        raise ShapeMismatch(f"{len(identities)} identities for {table.cells} cells")
    largest = largest_factors(table, spread)

    def raised(levels: np.ndarray, most: np.ndarray) -> np.ndarray:
        product = levels * secret_factors(key, identities, most)
        return np.ceil(product) if table.whole else product

    upper = raised(table.upper_protection, largest.upper)
    lower = raised(table.lower_protection, largest.lower)
    roomy = with_room_for_factors(table, spread)
    return replace(roomy, upper_protection=upper, lower_protection=lower)
