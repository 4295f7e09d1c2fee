"""Validate the arguments that all families of methods share."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from microguard.sdc.errors import InvalidParameter, TooFewRecords


def check_name(what: str, name: object, names: Iterable[str]) -> None:
    """Raise InvalidParameter unless `name` is one of `names`; `what` names the parameter in the message."""
    names = tuple(names)
    if not isinstance(name, str) or name not in names:
        raise InvalidParameter(f"{what}: expected one of {', '.join(names)}; found {name!r}")


def checked_seed(seed: object) -> int:
    """Return the seed as a Python integer.

    Raises
    ------
    InvalidParameter
        If the seed is not an integer, or is negative.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InvalidParameter(
            f"seed: expected an integer of at least 0, found {seed!r}. Choose one, such as 0"
        )
    return int(seed)


def check_records(records: int, least: int = 1) -> None:
    """Raise TooFewRecords if a file has fewer records than a method needs."""
    if records < least:
        raise TooFewRecords(
            f"records: expected at least {least}, found {records}. Exclude this file from the run"
        )
