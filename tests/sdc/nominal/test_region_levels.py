"""Tests of region levels in control tables: cells counted by pandas, hierarchies, errors by region."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from microguard.sdc.errors import InvalidParameter, UnknownVariable
from microguard.sdc.nominal import SearchParameters, anonymise
from microguard.sdc.nominal.control_tables import ControlTables
from microguard.sdc.nominal.frequency import from_frame
from microguard.sdc.nominal.region_levels import RegionLevels

LEVELS = ["municipality", "district"]


def country(records: int = 360, seed: int = 3) -> pd.DataFrame:
    """Draw records of twelve municipalities in three districts; occupation depends on the municipality."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, 12, records)
    return pd.DataFrame(
        {
            "work": (rng.geometric(0.3, records) + place) % 7,
            "municipality": [f"m{p:02}" for p in place],
            "sex": rng.choice(["f", "m"], records),
            "age": rng.integers(0, 5, records),
            "district": place // 4,
        }
    )


def crosstab_chi2(before: pd.DataFrame, after: pd.DataFrame, tables) -> float:
    total = 0.0
    for names in tables:
        old = before.groupby(list(names)).size()
        new = after.groupby(list(names)).size().reindex(old.index, fill_value=0)
        total += float(((new - old) ** 2 / old).sum())
    return total


def test_control_tables_by_region_count_the_cells_of_pandas_at_every_level():
    frame = country()
    levels, regions = RegionLevels.of(frame[LEVELS])
    coded = from_frame(frame.drop(columns=LEVELS), regions)
    tables = ControlTables.of(coded.frequencies, [("sex",)], levels=levels, region_dimension=1)
    assert tables.tables == (
        ("sex",),
        *((level, name) for level in LEVELS for name in ("work", "sex", "age")),
    )
    counted = [frame.groupby(list(names)).size().tolist() for names in tables.tables]
    assert tables.original.tolist() == [count for cells in counted for count in cells]
    assert set(tables.dimension) == {1}
    assert [int(tables.level[tables.table == t][0]) for t in range(7)] == [0, 1, 1, 1, 2, 2, 2]


def test_protect_frequencies_keeps_regions_and_k_with_tables_of_all_levels():
    frame = country()
    result = anonymise(frame, 3, 2, effort="fast", region=LEVELS)
    protected = result.protected
    pd.testing.assert_frame_equal(protected[LEVELS], frame[LEVELS])
    assert list(protected.columns) == list(frame.columns)
    assert protected.groupby(list(frame.columns)).size().min() >= 3
    named = [("work",), ("sex",), ("age",), ("work", "sex"), ("work", "age"), ("sex", "age")]
    named += [(level, name) for level in LEVELS for name in ("work", "sex", "age")]
    assert result.chi2 == pytest.approx(crosstab_chi2(frame, protected, named))
    worst = {
        level: max(
            int((protected.groupby([level, name]).size() - frame.groupby([level, name]).size()).abs().max())
            for name in ("sex",)
        )
        for level in LEVELS
    }
    assert all(result.region_errors[level][1] >= worst[level] for level in LEVELS)


def test_tables_by_region_reduce_regional_errors_and_hardly_increase_other_errors():
    frame = country()
    by_region = [(level, name) for level in LEVELS for name in ("work", "sex", "age")]
    national = [("work",), ("sex",), ("age",)]
    chi2 = {
        dimension: [
            crosstab_chi2(
                frame,
                anonymise(frame, 3, 1, effort="fast", region=LEVELS, region_dimension=dimension).protected,
                tables,
            )
            for tables in (by_region, national)
        ]
        for dimension in (0, 1)
    }
    assert chi2[1][0] < 0.5 * chi2[0][0]
    assert chi2[1][1] < chi2[0][1] + 5


def test_maximum_error_and_weight_apply_to_the_named_table():
    frame = country()
    table = ("municipality", "work")
    free = anonymise(frame, 3, 1, effort="fast", region=LEVELS, region_dimension=0)
    bounded = anonymise(
        frame,
        3,
        [("sex",), table],
        effort="fast",
        region=LEVELS,
        region_dimension=0,
        max_absolute_error={table: 2},
    )
    error = bounded.protected.groupby(list(table)).size() - frame.groupby(list(table)).size()
    assert error.abs().max() <= 2
    assert bounded.region_errors == {"municipality": {1: int(error.abs().max())}, "district": {}}
    weighted = anonymise(
        frame,
        3,
        [("sex",), table],
        effort="fast",
        region=LEVELS,
        region_dimension=0,
        parameters=SearchParameters(table_weight={"municipality": 20.0}),
    )
    assert crosstab_chi2(frame, weighted.protected, [table]) < crosstab_chi2(frame, free.protected, [table])


def test_region_levels_refuse_invalid_regions():
    frame = country()
    with pytest.raises(InvalidParameter, match="from fine to coarse"):
        anonymise(frame, 3, region=LEVELS[::-1])
    with pytest.raises(UnknownVariable):
        anonymise(frame, 3, region="state")
    with pytest.raises(InvalidParameter, match="a record without one"):
        anonymise(frame.assign(district=None), 3, region=LEVELS)
    with pytest.raises(InvalidParameter, match="found two"):
        anonymise(frame, 3, [tuple(LEVELS)], region=LEVELS)
    with pytest.raises(InvalidParameter, match="names of control tables"):
        anonymise(frame, 3, 1, region=LEVELS, max_absolute_error={("age", "sex"): 2})
    with pytest.raises(InvalidParameter, match="region_dimension"):
        anonymise(frame, 3, 1, region=LEVELS, region_dimension=-1)
