"""Compare the periods of two releases."""

from __future__ import annotations


def same_period(one: str, other: str) -> bool:
    """Return whether two releases can be of the same period; one without a period can be of every one."""
    return one == other or not one or not other
