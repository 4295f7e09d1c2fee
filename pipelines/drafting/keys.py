"""Numbers and texts that name something: each thing once, or the same thing again and again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from microguard.pipelines.drafting.profile import Column, Profile

EXPECTED_TIES = 5.0
"""Where chance would have made so many ties among whole numbers and there is none, they number things."""
FEWEST_THINGS = 10
FEWEST_TIES = 20
AGREEING = 0.98
"""Share of the records of a thing that agree on what belongs to it; a slip of the pen is no proof."""
LEAST_VARIETY = 0.2
"""Chance that two records differ in a column: below it agreement says nothing."""
MOST_WITNESSES = 12
"""Columns whose agreement is looked at."""
EVEN = 0.06
"""Largest distance from the uniform distribution (Kolmogorov) of numbers that were given or drawn: 600 drawn
ones exceed it in a case of forty, and are then taken for amounts."""
ROUNDED = 0.15
"""Share of round numbers from which they are amounts; of drawn ones it is a tenth."""


def numbers_things(column: Column, values: np.ndarray) -> bool:
    """Whole numbers, evenly spread, without a tie where chance would have made some: a serial number.

    Of n numbers over a range of W values, n (n - 1) / (2 W) pairs are expected to be equal where all values
    are as likely, and more where they are not.
    """
    least, most = column.range
    expected = column.present * (column.present - 1) / (2.0 * (most - least + 1.0))
    return column.is_whole and column.ties == 0 and expected >= EXPECTED_TIES and _is_even(values)


def looks_drawn(column: Column, values: np.ndarray) -> bool:
    """Numbers of one length, evenly spread over their range and no rounder than chance: registrations."""
    least, most = column.widths
    if not column.is_whole or least != most or least < 5 or column.round > ROUNDED * column.present:
        return False
    return _is_even(values)


def _is_even(values: np.ndarray) -> bool:
    """Whether values are spread like drawn ones over their range (Kolmogorov's distance)."""
    ordered = np.sort(values)
    position = (ordered - ordered[0]) / max(ordered[-1] - ordered[0], 1.0)
    return bool(np.abs(position - np.linspace(0.0, 1.0, len(ordered))).max() <= EVEN)


def repeats_by_period(column: Column, periods: Sequence[Column], profile: Profile) -> bool:
    """Whether each value occurs several times, and at most once in a period: the key of a panel."""
    if column.distinct < FEWEST_THINGS or column.present != profile.records:
        return False
    if 2 * column.distinct > profile.records:
        return False
    return any(
        profile.classes([column, period], 1)[0] == profile.records
        for period in periods
        if period is not column and column.distinct * period.distinct >= profile.records
    )


def holds_together(column: Column, witnesses: Sequence[Column], profile: Profile) -> bool:
    """Whether records of one value agree in another column, as those of a firm or household do.

    A column that only cuts this one into ranges (age groups) is no witness.
    """
    if column.distinct < FEWEST_THINGS or column.ties < FEWEST_TIES or not witnesses:
        return False
    codes = profile.glance([column, *witnesses])
    codes = codes[codes[column.label] >= 0]
    tied = codes[codes.duplicated(column.label, keep=False)]
    repeats = len(tied) - tied[column.label].nunique()
    if repeats < FEWEST_TIES:
        return False
    for witness in witnesses:
        shares = codes[witness.label].value_counts(normalize=True).to_numpy()
        if 1.0 - float(np.sum(shares**2)) < LEAST_VARIETY:
            continue
        breaks = len(tied.drop_duplicates([column.label, witness.label])) - tied[column.label].nunique()
        if breaks <= (1.0 - AGREEING) * repeats and not cuts_into_ranges(column, witness, profile):
            return True
    return False


def cuts_into_ranges(column: Column, other: Column, profile: Profile) -> bool:
    """Whether `other` has one value for each range of `column`: in its order, it rarely changes."""
    ordered = profile.in_order(column, other)
    changes = int(np.count_nonzero(ordered[1:] != ordered[:-1])) + 1
    return changes <= 2 * pd.unique(ordered).size
