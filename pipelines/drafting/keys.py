"""Recognise keys by their values: serial numbers, registration numbers, and keys that repeat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from microguard.pipelines.drafting.profile import Column, Profile

EXPECTED_TIES = 5.0
"""Whole numbers without ties are serial numbers if chance would produce at least so many ties."""
MIN_ENTITIES = 10
MIN_TIES = 20
AGREEING = 0.98
"""Minimum share of an entity's records that agree on its attributes; the rest may be typing errors."""
MIN_DISAGREEMENT = 0.2
"""Minimum probability that two records differ in a column; below it agreement is no evidence."""
MAX_WITNESSES = 12
"""Maximum number of columns whose agreement is tested."""
MAX_KOLMOGOROV_DISTANCE = 0.06
"""Maximum Kolmogorov distance of serial and registration numbers from the uniform distribution.

A sample of 600 uniform numbers exceeds it with probability 1/40, and is then classified as amounts."""
MAX_ROUND_SHARE = 0.15
"""Maximum share of multiples of ten among registration numbers; a uniform distribution has a tenth."""


def is_serial_number(column: Column, values: np.ndarray) -> bool:
    """Return whether whole numbers are a serial number: uniformly distributed, and without expected ties.

    Of n uniformly distributed numbers over a range of W values, n (n - 1) / (2 W) pairs are expected to be
    equal. Every other distribution has more ties.
    """
    least, most = column.range
    expected = column.present * (column.present - 1) / (2.0 * (most - least + 1.0))
    return column.is_whole and column.ties == 0 and expected >= EXPECTED_TIES and _is_even(values)


def is_registration_number(column: Column, values: np.ndarray) -> bool:
    """Return whether whole numbers have one length, are uniform over their range, and are rarely round."""
    least, most = column.widths
    if not column.is_whole or least != most or least < 5 or column.round > MAX_ROUND_SHARE * column.present:
        return False
    return _is_even(values)


def _is_even(values: np.ndarray) -> bool:
    """Return whether values are uniformly distributed over their range, by Kolmogorov's distance."""
    ordered = np.sort(values)
    position = (ordered - ordered[0]) / max(ordered[-1] - ordered[0], 1.0)
    return bool(np.abs(position - np.linspace(0.0, 1.0, len(ordered))).max() <= MAX_KOLMOGOROV_DISTANCE)


def is_panel_key(column: Column, periods: Sequence[Column], profile: Profile) -> bool:
    """Return whether a column is the key of a panel: values repeat, but at most once in each period."""
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
    """Return whether records with the same value agree in another column, as those of a firm or household do.

    A witness that is a binning of this column (age groups of ages) is not evidence.
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
    """Return whether `other` is a binning of `column`: sorted by `column`, its value rarely changes."""
    ordered = profile.codes_in_order(column, other)
    changes = int(np.count_nonzero(ordered[1:] != ordered[:-1])) + 1
    return changes <= 2 * pd.unique(ordered).size
