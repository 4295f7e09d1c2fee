"""Choice of the unit that k counts in a draft, and of clustering by missing pattern."""

from __future__ import annotations

from collections.abc import Sequence

from microguard.pipelines.drafting.column import Column
from microguard.pipelines.drafting.guess import Guess
from microguard.pipelines.drafting.profile import Profile

K = 3
"""Default k of a draft; it is changed if a trial with it exceeds the limits on disclosure."""
MANY_MISSING = 0.05
"""Minimum share of records with a missing number for which records are clustered by missing pattern."""


def counted_unit(guesses: Sequence[Guess], profile: Profile) -> Column | None:
    """Return the unit column if its values repeat, so that k must count units; otherwise None."""
    for each in guesses:
        if each.role == "unit" and each.column is not None and each.column.distinct < profile.records:
            return each.column
    return None


def clusters_by_missing_pattern(guesses: Sequence[Guess], profile: Profile) -> bool:
    """Return whether many records have a missing number and each missing pattern has at least k units in each
    region.
    """
    numeric = [each.column for each in guesses if each.kind == "numeric" and each.role == "quasi_identifier"]
    columns = [column for column in numeric if column is not None]
    rejected = profile.records - profile.count(profile.condition_all_finite(columns))
    if rejected <= MANY_MISSING * profile.records or rejected > profile.count(
        profile.condition_any_missing(columns)
    ):
        return False  # few records lack a number, or some of the numbers are unreadable
    region = [each.column for each in guesses if each.role == "region" and each.column is not None]
    return profile.smallest_pattern(columns, region, counted_unit(guesses, profile)) >= K
