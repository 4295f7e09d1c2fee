"""Numbers and texts that name something: each thing once, or the same thing again and again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from microguard.pipelines.drafting.profile import Column, Profile

EXPECTED_TIES = 5.0
"""Where chance would have made so many ties among whole numbers and there is none, they number things."""
MIN_ENTITIES = 10
MIN_TIES = 20
AGREEING = 0.98
"""Share of the records of a thing that agree on what belongs to it; a slip of the pen is no proof."""
MIN_DISAGREEMENT = 0.2
"""Chance that two records differ in a column: below it agreement says nothing."""
MAX_WITNESSES = 12
"""Columns whose agreement is looked at."""
MAX_KOLMOGOROV_DISTANCE = 0.06
"""Largest distance from the uniform distribution (Kolmogorov) of numbers that were given or drawn: 600 drawn
ones exceed it in a case of forty, and are then taken for amounts."""
MAX_ROUND_SHARE = 0.15
"""Share of round numbers from which they are amounts; of drawn ones it is a tenth."""


def is_serial_number(column: Column, values: np.ndarray) -> bool:
    """Whole numbers, evenly spread, without a tie where chance would have made some: a serial number.

    Of n numbers over a range of W values, n (n - 1) / (2 W) pairs are expected to be equal where all values
    are as likely, and more where they are not.
    """
    least, most = column.range
    expected = column.present * (column.present - 1) / (2.0 * (most - least + 1.0))
    return column.is_whole and column.ties == 0 and expected >= EXPECTED_TIES and _is_even(values)


def is_registration_number(column: Column, values: np.ndarray) -> bool:
    """Numbers of one length, evenly spread over their range and no rounder than chance: registrations."""
    least, most = column.widths
    if not column.is_whole or least != most or least < 5 or column.round > MAX_ROUND_SHARE * column.present:
        return False
    return _is_even(values)


def _is_even(values: np.ndarray) -> bool:
    """Whether values are spread like drawn ones over their range (Kolmogorov's distance)."""
    ordered = np.sort(values)
    position = (ordered - ordered[0]) / max(ordered[-1] - ordered[0], 1.0)
    return bool(np.abs(position - np.linspace(0.0, 1.0, len(ordered))).max() <= MAX_KOLMOGOROV_DISTANCE)


def is_panel_key(column: Column, periods: Sequence[Column], profile: Profile) -> bool:
    """Whether each value occurs several times, and at most once in a period: the key of a panel."""
    if column.distinct < MIN_ENTITIES or column.present != profile.records:
        return False
    if 2 * column.distinct > profile.records:
        return False
    return any(
        profile.classes([column, period], 1)[0] == profile.records
        for period in periods
        if period is not column and column.distinct * period.distinct >= profile.records
    )


def identifies_entities(column: Column, witnesses: Sequence[Column], profile: Profile) -> bool:
    """Whether records of one value agree in another column, as those of a firm or household do.

    A column that only cuts this one into ranges (age groups) is no witness.
    """
    if column.distinct < MIN_ENTITIES or column.ties < MIN_TIES or not witnesses:
        return False
    codes = profile.first_codes([column, *witnesses])
    codes = codes[codes[column.label] >= 0]
    tied = codes[codes.duplicated(column.label, keep=False)]
    repeats = len(tied) - tied[column.label].nunique()
    if repeats < MIN_TIES:
        return False
    for witness in witnesses:
        shares = codes[witness.label].value_counts(normalize=True).to_numpy()
        if 1.0 - float(np.sum(shares**2)) < MIN_DISAGREEMENT:
            continue
        breaks = len(tied.drop_duplicates([column.label, witness.label])) - tied[column.label].nunique()
        if breaks <= (1.0 - AGREEING) * repeats and not is_binning_of(column, witness, profile):
            return True
    return False


def is_binning_of(column: Column, other: Column, profile: Profile) -> bool:
    """Whether `other` has one value for each range of `column`: in its order, it rarely changes."""
    ordered = profile.codes_in_order(column, other)
    changes = int(np.count_nonzero(ordered[1:] != ordered[:-1])) + 1
    return changes <= 2 * pd.unique(ordered).size
