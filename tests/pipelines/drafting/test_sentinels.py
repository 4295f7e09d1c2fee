"""Tests of sentinels: codes of missing numbers are detected by a gap, a negative sign or their frequency."""

import numpy as np
import pytest
from microguard.pipelines.drafting.sentinels import sentinels


def distinct_with_counts(*values):
    return np.unique(np.array(values, dtype=float), return_counts=True)


HOURS = [*range(5, 61)] * 4


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ([*HOURS, *[97] * 5, *[99] * 20], (97, 99)),
        ([*HOURS, 99, 99], ()),
        ([*range(11)] * 9 + [77] * 5 + [88] * 4, (77, 88)),
        ([*range(0, 600, 30)] * 9 + [6666] * 9 + [7777] * 3 + [8888] * 4, (6666, 7777, 8888)),
        ([*range(100)] * 3, ()),
        ([*[*range(100)] * 3, *[99] * 40], (99,)),
        ([*range(0, 5000, 7), -9, -9, -9], (-9,)),
        ([*range(-50, 50)] * 4, ()),
        ([*range(100, 20000, 9), *[9999] * 30], (9999,)),
        ([*range(100, 20000, 9), *[99999] * 30], (99999,)),
        ([99, 99, 99], ()),
        ([], ()),
    ],
    ids=[
        "gap",
        "too few",
        "refused and not known",
        "not applicable",
        "ages",
        "a spike",
        "negative",
        "profits",
        "inside the range",
        "beyond the range",
        "only the code",
        "no code",
    ],
)
def test_sentinels_returns_codes_separated_from_other_values(values, codes):
    assert sentinels(*distinct_with_counts(*values)) == (codes, ())


def test_sentinels_marks_minus_one_next_to_zero_as_possibly_missing():
    """The age of a child born after the reference date is -1; if -1 is frequent, it is a missing code."""
    assert sentinels(*distinct_with_counts(*[*range(-1, 90)] * 4)) == ((), (-1,))
    assert sentinels(*distinct_with_counts(*[*range(90)] * 4, *[-1] * 30)) == ((-1,), ())
    assert sentinels(*distinct_with_counts(*[*range(16, 90)] * 4, *[-1] * 4)) == ((-1,), ())
