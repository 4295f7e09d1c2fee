"""Comparison of the periods of two releases."""

from __future__ import annotations


def same_period(one: str, other: str) -> bool:
    """Return whether two releases may have the same period; a release without a period may have any."""
    return one == other or not one or not other
