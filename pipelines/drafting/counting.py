"""What k counts in a draft, and whether missing numbers make clusters of their own."""

from __future__ import annotations

from collections.abc import Sequence

from microguard.pipelines.drafting.classify_column import Guess
from microguard.pipelines.drafting.profile import Column, Profile

K = 3
"""The k of a draft, unless a trial shows that it leaves too much open."""
MANY_MISSING = 0.05
"""Share from which records that lack a number are clustered by what they lack, where that is possible."""


def counted_unit(guesses: Sequence[Guess], profile: Profile) -> Column | None:
    """The unit, where it repeats, so that k has to count it."""
    for each in guesses:
        if each.role == "unit" and each.column is not None and each.column.distinct < profile.records:
            return each.column
    return None


def clusters_by_missing_pattern(guesses: Sequence[Guess], profile: Profile) -> bool:
    """Whether the records that lack a number are many, and enough of each pattern in each region."""
    numeric = [each.column for each in guesses if each.kind == "numeric" and each.role == "quasi_identifier"]
    columns = [column for column in numeric if column is not None]
    rejected = profile.records - profile.count(profile.condition_all_finite(columns))
    if rejected <= MANY_MISSING * profile.records or rejected > profile.count(
        profile.condition_any_missing(columns)
    ):
        return False  # few, or unreadable rather than missing
    region = [each.column for each in guesses if each.role == "region" and each.column is not None]
    return profile.smallest_pattern(columns, region, counted_unit(guesses, profile)) >= K
