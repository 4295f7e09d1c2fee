"""Numbers in [0, 1) that depend on a secret key and on what they are drawn for, and on nothing else.

The same cell draws the same number in every run, table and year of the software, so that nothing drawn can
be averaged; without the key all numbers are independent (HMAC-SHA256).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

import numpy as np
from microguard.sdc.errors import InvalidParameter

#: Bytes a key must have at least: shorter ones can be tried out.
MIN_KEY_BYTES = 16


def keyed_numbers(key: bytes, context: bytes, identities: Sequence[str]) -> np.ndarray:
    """(identities,) numbers in [0, 1), one stream per context.

    Raises
    ------
    InvalidParameter
        Where the key is too short.
    """
    if len(key) < MIN_KEY_BYTES:
        raise InvalidParameter(f"the key has {len(key)} bytes, expected at least {MIN_KEY_BYTES}")
    numbers = np.empty(len(identities))
    for position, identity in enumerate(identities):
        digest = hmac.new(key, context + b"\x00" + identity.encode(), hashlib.sha256).digest()
        numbers[position] = (int.from_bytes(digest[:8], "big") >> 11) / 2.0**53
    return numbers
