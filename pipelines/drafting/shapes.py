"""Serial numbers, registration numbers and code lists, recognised by their values."""

from __future__ import annotations

import numpy as np
from microguard.pipelines.drafting.column import Column

EXPECTED_TIES = 5.0
"""Minimum number of ties expected by chance from which whole numbers without ties count as serial numbers."""
MAX_TIES = 0.02
"""Maximum share of records that repeat a serial number, because a key may have a few duplicates."""
MAX_KOLMOGOROV_DISTANCE = 0.06
"""Maximum Kolmogorov distance of serial and registration numbers from the uniform distribution.

A sample of 600 uniform numbers exceeds it with probability 1/40, and is then classified as amounts."""
MAX_ROUND_SHARE = 0.15
"""Maximum share of multiples of ten among registration numbers; in a uniform distribution it is a tenth."""
MIN_CODES, MIN_RECORDS_PER_CODE, MIN_RECORDS_PER_OTHER = 8, 4, 2
"""Minimum numbers for a code list: codes, records per code, and records per code without the most frequent
one."""
MAX_OCCUPIED = 0.6
"""Maximum share of the whole numbers between the quartiles of the codes that occur as codes.

Amounts with as many ties contain nearly all whole numbers of this range, unless they are rounded."""
MAX_ROUNDED_CODES = 0.3
MIN_NUMBERED = 0.8
"""Minimum share of used whole numbers in the range of a numbering that starts above 1,000."""


def is_serial_number(column: Column, values: np.ndarray) -> bool:
    """Return whether whole numbers are serial numbers: uniformly distributed, without the ties expected by
    chance.

    Of n uniformly distributed numbers over a range of W values, n (n - 1) / (2 W) pairs are expected to be
    equal. Every other distribution has more ties.
    """
    least, most = column.range
    expected = column.present * (column.present - 1) / (2.0 * (most - least + 1.0))
    few = column.ties <= MAX_TIES * column.present and expected >= EXPECTED_TIES * (1 + column.ties)
    return column.is_whole and few and _is_uniform(values)


def is_registration_number(column: Column, values: np.ndarray) -> bool:
    """Return whether whole numbers have one length, are uniform over their range, and are rarely multiples of
    ten.
    """
    least, most = column.widths
    if not column.is_whole or least != most or least < 5 or column.round > MAX_ROUND_SHARE * column.present:
        return False
    return _is_uniform(values)


def is_code_list(column: Column, values: np.ndarray) -> bool:
    """Return whether whole numbers have the form of a code list (ISCO, NACE, municipalities).

    Each occurs several times, and there are gaps between them where amounts would have none.
    """
    if not column.is_whole or column.range[0] < 0 or column.distinct < MIN_CODES:
        return False
    if column.present < MIN_RECORDS_PER_CODE * column.distinct:
        return False
    codes, times = np.unique(values, return_counts=True)
    if times.sum() - times.max() < MIN_RECORDS_PER_OTHER * len(codes):
        return False  # most records have 0, so it is an amount that few units have
    low, high = np.quantile(codes, (0.25, 0.75))
    middle = codes[(codes >= low) & (codes <= high)]
    if len(middle) < MIN_CODES / 2 or np.mean(codes % 10 == 0) > MAX_ROUNDED_CODES:
        return False
    step = np.gcd.reduce(np.diff(codes).astype(np.int64))
    return bool(step == 1 and len(middle) <= MAX_OCCUPIED * (high - low + 1))


def is_numbering(column: Column, values: np.ndarray) -> bool:
    """Return whether whole numbers are a numbering: strata or weeks from 0 or 1, or sampling units.

    A numbering from 0 or 1 has no gaps. One that begins above 1,000 and is no list of years may have some.
    """
    least, most = column.range
    span = most - least + 1
    full = column.distinct == span and least in (0, 1)
    full |= column.distinct >= MIN_NUMBERED * span and least >= 1_000 and most > 2_100
    repeated = column.present >= MIN_RECORDS_PER_CODE * column.distinct
    return bool(column.is_whole and full and repeated and _is_uniform(values))


def _is_uniform(values: np.ndarray) -> bool:
    """Return whether values are uniformly distributed over their range, by the Kolmogorov distance."""
    if not len(values):
        return False
    ordered = np.sort(values)
    position = (ordered - ordered[0]) / max(ordered[-1] - ordered[0], 1.0)
    return bool(np.abs(position - np.linspace(0.0, 1.0, len(ordered))).max() <= MAX_KOLMOGOROV_DISTANCE)
