"""Arguments that every family of methods takes, checked alike."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from microguard.sdc.errors import InvalidParameter, TooFewRecords


def check_name(what: str, name: object, names: Iterable[str]) -> None:
    """Refuse what is none of the names there are of an algorithm, an effort and the like."""
    names = tuple(names)
    if not isinstance(name, str) or name not in names:
        raise InvalidParameter(f"unknown {what} {name!r}; there are {', '.join(names)}")


def checked_seed(seed: object) -> int:
    """The seed as a plain integer; refused where it is none, or negative."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InvalidParameter("seed must be a non-negative integer")
    return int(seed)


def check_records(records: int, least: int = 1) -> None:
    """Refuse fewer records than a method needs; what it computes of them would mean nothing."""
    if records < least:
        raise TooFewRecords(f"expected at least {least} record(s), found {records}: leave such a file out")
