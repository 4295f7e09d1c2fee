"""Pseudo-random numbers in [0, 1) from a secret key and the identity of a cell (HMAC-SHA256).

The same identity draws the same number in every run and version of the software, so that repeated draws
cannot be averaged. Without the key the numbers of different identities are independent.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

import numpy as np
from microguard.sdc.errors import InvalidParameter

#: Minimum number of bytes of a key; an attacker could try all shorter keys.
MIN_KEY_BYTES = 16


def keyed_numbers(key: bytes, context: bytes, identities: Sequence[str]) -> np.ndarray:
    """Return one number in [0, 1) per identity; each context gives a separate stream of numbers.

    Raises
    ------
    InvalidParameter
        If the key is too short.
    """
    if len(key) < MIN_KEY_BYTES:
        raise InvalidParameter(f"key: found {len(key)} bytes, expected at least {MIN_KEY_BYTES}")
    numbers = np.empty(len(identities))
    for position, identity in enumerate(identities):
        digest = hmac.new(key, context + b"\x00" + identity.encode(), hashlib.sha256).digest()
        numbers[position] = (int.from_bytes(digest[:8], "big") >> 11) / 2.0**53
    return numbers
