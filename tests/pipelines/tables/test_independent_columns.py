"""Tests of columns of finished tables that follow each other: they have no records to compare."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.tables.independent_columns import _no_sums_equal, cannot_add_up
from microguard.pipelines.tables.nested_columns import refuse_unknown_columns
from microguard.pipelines.tables.published_before import new_cells
from microguard.schemas.errors import GateRefused
from microguard.schemas.specification.read import build_specification

from tests.attacks.suppression.office import cells_of_finished, of_finished

ORIGIN = {"source": "survey", "period": "", "release_id": "r1"}


def firms(regions=12, count=600):
    random = np.random.default_rng(0)
    branch = random.integers(0, 6, count)
    return pd.DataFrame(
        {
            "branch": branch.astype(str),
            "section": (branch // 2).astype(str),
            "size": random.choice(list("xyz"), count),
            "region": random.integers(0, regions, count).astype(str),
            "turnover": random.lognormal(6, 1, count).round(),
            "number": 1.0,
        }
    )


def finished(frame, dimensions):
    """Return the rows of the finished table of some firms, with all margins."""
    several = ([name] for name in dimensions) if len(dimensions) > 1 else ()
    rows = [
        frame.assign(**{name: "Total" for name in dimensions if name not in kept})
        for kept in ([], dimensions, *several)
    ]
    return pd.concat(rows).groupby(dimensions, as_index=False)[["turnover", "number"]].sum()


def cells_of(frame, dimensions):
    rows = finished(frame, dimensions)
    table = of_finished(
        rows, {"value": "turnover", "contributors": "number", "tables": [dimensions], "decimals": 0}
    ).table
    assert table is not None
    return cells_of_finished(rows, table), table


def before_and_after(frame, first, second, later=None):
    cells, table = cells_of(frame, first)
    return new_cells(cells, table, cells.units, None, ORIGIN), *cells_of(
        frame if later is None else later, second
    )


@pytest.mark.parametrize(
    ("column", "other", "regions", "proved"),
    [
        ("size", "branch", 12, True),
        ("branch", "size", 12, True),
        ("section", "branch", 12, False),  # a section is the sum of two branches
        ("branch", "section", 12, False),
        ("size", "branch", 4, True),  # fewer regions than codes, but few codes
    ],
)
def test_true_values_prove_that_columns_do_not_add_up(column, other, regions, proved):
    before, cells, table = before_and_after(firms(regions), [other, "region"], [column, "region"])
    assert cannot_add_up(cells, table, before, column, other) is proved


@pytest.mark.parametrize(
    ("column", "other", "proved"),
    [("sex", "region", True), ("east", "region", False), ("all", "region", True)],
)
def test_sums_of_few_codes_prove_that_columns_of_one_way_tables_do_not_add_up(column, other, proved):
    random = np.random.default_rng(3)
    frame = pd.DataFrame({"region": random.choice(list("nesw"), 900), "sex": random.choice(list("fm"), 900)})
    frame = frame.assign(east=frame["region"].isin(["n", "e"]).astype(str), all="x", turnover=1.0, number=1.0)
    frame["turnover"] = random.lognormal(8, 1, 900).round()
    before, cells, table = before_and_after(frame, [other], [column])
    assert cannot_add_up(cells, table, before, column, other) is proved


def test_sums_of_few_codes_are_those_of_all_sets():
    random = np.random.default_rng(0)
    outcomes = set()
    for _ in range(300):
        ours, theirs = (random.integers(0, 40, random.integers(2, 5)).astype(float) for _ in range(2))
        proper = [
            {
                sum(chosen)
                for size in range(1, len(amounts))
                for chosen in combinations(amounts.tolist(), size)
            }
            for amounts in (ours, theirs)
        ]
        equal = any(abs(one - other) <= 0.5 for one in proper[0] for other in proper[1])
        outcomes.add(equal)
        assert _no_sums_equal(ours, theirs, 0.5) is not equal
    assert outcomes == {True, False}


def test_revised_values_prove_nothing():
    """With one new firm, no branches add up exactly to a section, but nearly."""
    frame = firms()
    later = pd.concat([frame, frame.head(1).assign(turnover=5e6)])
    before, cells, table = before_and_after(frame, ["branch", "region"], ["section", "region"], later)
    assert not cannot_add_up(cells, table, before, "section", "branch")
    before, cells, table = before_and_after(frame, ["branch", "region"], ["size", "region"], later)
    assert not cannot_add_up(cells, table, before, "size", "branch")


@pytest.mark.parametrize(("column", "refused"), [("section", True), ("size", False), ("branch", False)])
def test_finished_table_without_a_column_of_an_earlier_one_is_refused_unless_they_cannot_add_up(
    column, refused
):
    before, cells, table = before_and_after(firms(), ["branch", "region"], [column, "region"])
    if not refused:
        refuse_unknown_columns((), table, cells, before, ORIGIN)
        return
    with pytest.raises(GateRefused, match=r"The cells lack branch.*both tables together"):
        refuse_unknown_columns((), table, cells, before, ORIGIN)


@pytest.mark.spark
@pytest.mark.parametrize("method", ["adjustment", "suppression"])
def test_finished_table_by_section_after_one_by_branch_is_refused(adjusted, tmp_path, method):
    """The attacker subtracts the other branches from their section."""
    frame = firms(regions=3, count=60)

    def described(dimensions, name):
        rows = finished(frame, dimensions)
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
        return build_specification(
            {
                "release": {"name": name, "k": 3, "source": "survey"},
                "input": {"path": f"{name}.csv", "format": "csv"},
                "variables": {
                    **{each: {"role": "other"} for each in dimensions},
                    **{each: {"role": "other", "kind": "numeric"} for each in ("turnover", "number")},
                },
                "table": {
                    "source": "cells",
                    "value": "turnover",
                    "contributors": "number",
                    "tables": [dimensions],
                    "decimals": 0,
                    "minimum_frequency": 3,
                    "method": method,
                    "effort": "fast",
                },
                "publish": {"path": name, "evidence": "evidence"},
            },
            tmp_path,
        )

    adjusted(described(["branch", "region"], "branches"))
    with pytest.raises(GateRefused, match="The cells lack branch"):
        adjusted(described(["section", "region"], "sections"))
