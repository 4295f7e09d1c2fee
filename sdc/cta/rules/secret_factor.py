"""Protection levels times a secret factor per cell, for publication.

Optimal deviations stop exactly at a limit, so an attacker who knows the rule is left with two candidates.
A factor in [1, 1.5] drawn per cell from a key that nobody outside holds turns each into an interval. The
factor depends on key and cell alone: the same cell gets the same factor in every run and table, so
repeated releases cannot be averaged.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sdc.cta.table.cell_table import CellTable
from sdc.errors import InvalidParameter, ShapeMismatch

LEAST_FACTOR, LARGEST_FACTOR = 1.0, 1.5
#: Bytes a key must have at least: shorter ones can be tried out.
MIN_KEY_BYTES = 16
_CONTEXT = b"microguard/cta/protection-factor\x00"


def secret_factors(key: bytes, identities: Sequence[str]) -> np.ndarray:
    """(cells,) factors in [1, 1.5), from HMAC-SHA256 of each cell's identity.

    Raises
    ------
    InvalidParameter
        Where the key is too short.
    """
    if len(key) < MIN_KEY_BYTES:
        raise InvalidParameter(f"the key has {len(key)} bytes, expected at least {MIN_KEY_BYTES}")
    span = LARGEST_FACTOR - LEAST_FACTOR
    factors = np.empty(len(identities))
    for position, identity in enumerate(identities):
        digest = hmac.new(key, _CONTEXT + identity.encode(), hashlib.sha256).digest()
        factors[position] = LEAST_FACTOR + span * (int.from_bytes(digest[:8], "big") >> 11) / 2.0**53
    return factors


def with_secret_levels(table: CellTable, key: bytes, identities: Sequence[str]) -> CellTable:
    """The table with each sensitive cell's levels times its factor, whole again where the table is.

    A direction that had room for the plain level gets room for the raised one.
    """
    if len(identities) != table.cells:
        raise ShapeMismatch(f"{len(identities)} identities for {table.cells} cells")
    factors = secret_factors(key, identities)

    def raised(levels: np.ndarray) -> np.ndarray:
        return np.ceil(levels * factors) if table.whole else levels * factors

    upper, lower = raised(table.upper_protection), raised(table.lower_protection)
    directed = table.sensitive
    upper_room = np.where(
        directed & table.can_rise, np.maximum(table.upper_capacity, upper), table.upper_capacity
    )
    lower_room = np.where(
        directed & table.can_fall, np.maximum(table.lower_capacity, lower), table.lower_capacity
    )
    return replace(
        table,
        upper_protection=upper,
        lower_protection=lower,
        upper_capacity=upper_room,
        lower_capacity=lower_room,
    )
