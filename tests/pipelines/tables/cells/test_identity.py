"""Tests of the identity of a cell: in the secret draws, and among the cells published before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from microguard.pipelines.tables.adjusted import adjusted, protect_beside_earlier_releases
from microguard.pipelines.tables.cells.identity import draw_identities
from microguard.pipelines.tables.problem import table_problem
from microguard.pipelines.tables.published_before import (
    PublishedValues,
    StandingValueFails,
    new_cells,
    of_the_same_records,
)
from microguard.schemas.errors import ProtectionFailed

from tests.pipelines.tables.test_published_before import COUNTS, KEY, ORIGIN, counted
from tests.schemas.specification.test_table import build

AMOUNTS = {"value": "turnover", "tables": [["a21", "region"]], "hierarchies": [["a10", "a21"]]}
HERE = {"source": "register", "period": "2026"}


def test_draws_of_an_amount_depend_on_source_period_measure_members_and_amount():
    chosen = build(AMOUNTS)
    cells = counted(chosen)
    members = replace(cells, members=np.full(len(cells), "a" * 32))
    same = draw_identities(members, chosen.table, HERE)
    assert len(set(same)) == len(cells)
    value = chosen.table.model_copy(update={"value": "firms"})
    others = [
        draw_identities(members, chosen.table, HERE | {"period": "2027"}),
        draw_identities(members, chosen.table, HERE | {"source": "other"}),
        draw_identities(members, value, HERE),
        draw_identities(replace(members, members=np.full(len(cells), "b" * 32)), chosen.table, HERE),
        draw_identities(replace(members, units=cells.units + 1), chosen.table, HERE),
    ]
    assert all(set(same).isdisjoint(each) for each in others)
    finer = chosen.table.model_copy(update={"decimals": 4})
    assert draw_identities(replace(members, units=cells.units * 100), finer, HERE) == same


def test_draws_of_a_count_depend_on_members_and_not_on_the_period():
    chosen = build(COUNTS)
    cells = counted(chosen)
    same = draw_identities(cells, chosen.table, HERE)
    assert draw_identities(cells, chosen.table, {"source": "other", "period": "2027"}) == same
    changed = draw_identities(replace(cells, units=cells.units + 1), chosen.table, HERE)
    assert set(same).isdisjoint(changed)
    left = draw_identities(replace(cells, members=np.full(len(cells), "b" * 32)), chosen.table, HERE)
    assert set(same).isdisjoint(left)


@pytest.mark.parametrize("size", [1, 12_345], ids=["few digits", "many digits"])
@pytest.mark.parametrize("kind", [AMOUNTS, COUNTS], ids=["amounts", "counts"])
def test_cell_is_identified_by_members_and_amount_in_any_table(kind, size):
    chosen = build(kind)
    cells = counted(chosen)
    named = replace(
        cells, units=cells.units * size, members=np.array([f"{row:032d}" for row in range(len(cells))])
    )
    listed = new_cells(named, chosen.table, named.units, None, ORIGIN)
    third = np.arange(len(cells)) == 3
    part = replace(named, units=np.where(third, named.units, named.units + 1))
    elsewhere = {"source": "exporters", "period": ""}
    assert of_the_same_records(part, chosen.table, listed, elsewhere) == [listed[3]]
    others = replace(part, members=np.array([f"{row:032d}" for row in range(99, 99 + len(cells))]))
    for unknown in (others, replace(part, members=None)):
        known = of_the_same_records(unknown, chosen.table, listed, elsewhere)
        assert known == ([listed[3]] if size > 1 else [])


def test_refusal_names_the_release_with_conflicting_values():
    chosen = build(COUNTS)
    cells = counted(chosen)
    few = np.flatnonzero((cells.units > 0) & (cells.units < 3))[:1]
    standing = PublishedValues(np.isin(np.arange(len(cells)), few), cells.units, releases=("earlier",))
    with pytest.raises(StandingValueFails, match="earlier"):
        table_problem(cells, chosen, KEY, standing)
    chosen = build(AMOUNTS | {"effort": "fast"})
    cells = counted(chosen)
    cells = replace(cells, contributors=None, largest=np.zeros((len(cells), 2)))
    finest = (cells.codes != "Total").all(axis=1).to_numpy()
    margin = (cells.codes == "Total").all(axis=1).to_numpy()
    units = np.where(margin, cells.units + 100 * finest.sum(), cells.units)
    standing = PublishedValues(finest | margin, units, releases=("earlier",))
    problem = table_problem(cells, chosen, KEY, standing)
    with pytest.raises(ProtectionFailed, match="earlier"):
        protect_beside_earlier_releases(adjusted, problem, chosen, chosen.table, KEY)
