"""Tests of rescaled duplicates: amounts published in another unit are recognised, few cells by exact
agreement.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.tables.cells.cells import tabulated
from microguard.pipelines.tables.rescaled_duplicates import proportional

from tests.schemas.specification.test_table import build

#: Turnover of three regions and its total.
EUROS = (813_223, 90_511, 2_413_901, 3_317_635)
RECORDS = (9.0, 3.0, 30.0, 42.0)


@cache
def of_region():
    table = build({"value": "turnover", "tables": [["region"]], "decimals": 0}).table
    assert table is not None
    return table


def in_one_ratio(here, there, records=RECORDS):
    table = of_region()
    codes = pd.DataFrame({"region": [*"abcdefgh"[: len(here) - 1], "Total"]})
    counts = np.array(records[: len(here)])
    cells = tabulated(codes, table, units=np.array(here, float), contributors=counts)
    amounts = dict(zip(codes["region"], map(Decimal, there), strict=True))
    return proportional(
        cells, table, [(row, amounts[code]) for row, code in enumerate(cells.codes["region"])]
    )


@pytest.mark.parametrize(
    ("here", "there", "found"),
    [
        (EUROS, EUROS, True),
        ([100 * euros for euros in EUROS], EUROS, True),
        ([813_225, 91_511, 2_413_901, 3_318_637], EUROS, False),
        # amounts with so few digits may coincide by chance
        ([round(euros / 1000) for euros in EUROS], EUROS, False),
        ([813_223, 90_511, 903_734], [813_223, 90_511, 903_734], False),
        ([903_734] * 4, [903_734] * 4, False),  # many cells have the same amount
    ],
)
def test_few_cells_with_one_ratio_are_the_same_amounts_if_they_have_many_digits(here, there, found):
    assert in_one_ratio(here, there) is found


#: Numbers of records of seven regions and their total.
COUNTS = (1, 2, 4, 7, 13, 22, 31, 80)


@pytest.mark.parametrize(
    ("here", "there", "found"),
    [
        (COUNTS, COUNTS, True),
        ([2 * count for count in COUNTS], COUNTS, True),
        ([1, 2, 4, 7, 13, 22, 30, 79], COUNTS, False),
        ([1, 2, 3, 6], [1, 2, 3, 6], False),  # as few small numbers may be equal by chance
        ([1] * 8, [1] * 8, False),
    ],
)
def test_sums_of_ones_are_the_counts_of_the_same_records(here, there, found):
    assert in_one_ratio(here, there, records=COUNTS[: len(here)]) is found


def test_few_amounts_of_unrelated_variables_have_no_common_ratio():
    rng = np.random.default_rng(1)
    for _ in range(1000):
        one, other = np.round(rng.lognormal(12, 1.5, (2, 3)))
        assert not in_one_ratio([*one, one.sum()], [*other, other.sum()])
