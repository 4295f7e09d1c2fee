"""Tests of tables from codes: constraints are satisfied, cells are unique, unknown codes are named by
position.
"""

import numpy as np
import pandas as pd
import pytest
from microguard.sdc.cta import CellTable, adjust
from microguard.sdc.cta.rules.sensitivity import capacities, largest_contributions, p_percent
from microguard.sdc.cta.table.check import check
from microguard.sdc.cta.table.relations import TOTAL, Dimension, from_cells, tabulate
from microguard.sdc.cta.table.summation import Summation
from microguard.sdc.errors import InvalidParameter, ShapeMismatch, UnknownVariable

from tests.reference import reference_file
from tests.sdc.cta.tables import grid_relations


def town(records=400, seed=0):
    rng = np.random.default_rng(seed)
    district = rng.integers(0, 6, records)
    region = np.array(["north", "south"])[district // 3]
    return region, np.char.add("d", district.astype(str)), rng.choice(["a", "b", "c"], records)


def test_two_by_two_table_has_nine_cells_and_six_constraints():
    x, y = Dimension("x", (TOTAL, "a", "b"), [-1, 0, 0]), Dimension("y", (TOTAL, "c", "d"), [-1, 0, 0])
    table = tabulate([x, y], [["a", "a", "b", "b"], ["c", "d", "c", "d"]])
    assert table.cells == 9
    assert table.relations.shape == (6, 9)
    totals = table.totals([["a", "a", "b", "b"], ["c", "d", "c", "d"]], [1, 2, 3, 4])
    by_code = dict(zip(zip(table.codes(0), table.codes(1), strict=True), totals, strict=True))
    assert by_code[(TOTAL, TOTAL)] == 10
    assert by_code[("a", TOTAL)] == 3
    assert by_code[(TOTAL, "d")] == 6


def test_constraints_of_hierarchical_tables_are_satisfied():
    region, district, kind = town()
    place = Dimension.from_levels("place", region, district)
    sort = Dimension.from_levels("kind", kind)
    table = tabulate([place, sort], [district, kind])
    assert table.cells == (1 + 2 + 6) * (1 + 3)
    totals = table.totals([district, kind], np.ones(len(kind)))
    assert not np.any(table.relations @ totals)
    assert totals[0] == len(kind)


def test_linked_tables_share_common_margins():
    region, district, kind = town()
    size = np.where(np.arange(len(kind)) % 2 == 0, "big", "small")
    dimensions = [
        Dimension.from_levels("place", region, district),
        Dimension.from_levels("kind", kind),
        Dimension.from_levels("size", size),
    ]
    linked = tabulate(
        dimensions, [district, kind, size], tables=[("place", "kind"), ("place", "size"), ("kind", "size")]
    )
    assert linked.cells == 9 * 4 + 9 * 3 + 4 * 3 - 9 - 4 - 3 + 1
    totals = linked.totals([district, kind, size], np.arange(len(kind)))
    assert not np.any(linked.relations @ totals)
    assert len(set(linked.identities())) == linked.cells


def test_linked_hierarchical_table_is_tabulated_and_adjusted():
    region, district, kind = town(150)
    amounts = np.random.default_rng(1).lognormal(3, 1.5, len(kind))
    dimensions = [Dimension.from_levels("place", region, district), Dimension.from_levels("kind", kind)]
    tabulation = tabulate(dimensions, [district, kind])
    totals = tabulation.totals([district, kind], amounts)
    largest, numbers = largest_contributions(tabulation, [district, kind], amounts, 2)
    assert numbers.max() == len(kind)
    sensitivity = p_percent(largest, totals, 40)
    assert sensitivity.sensitive.any()
    table = CellTable(
        values=totals,
        relations=tabulation.relations,
        sensitive=sensitivity.sensitive,
        lower_protection=sensitivity.lower,
        upper_protection=sensitivity.upper,
        lower_capacity=capacities(totals, 30, sensitivity.lower),
        upper_capacity=capacities(totals, 30, sensitivity.upper),
    )
    d = adjust(table, effort="fast")
    assert check(table, d.values).sound


def test_tabulation_refuses_unnested_levels_unknown_codes_and_repeated_cells():
    with pytest.raises(InvalidParameter):
        Dimension.from_levels("place", ["n", "s"], ["d1", "d1"])
    x = Dimension("x", (TOTAL, "a", "b"), [-1, 0, 0])
    with pytest.raises(UnknownVariable, match="first at position 1"):
        tabulate([x], [["a", "z"]])
    with pytest.raises(InvalidParameter) as caught:
        from_cells([x], [["a", "b", "a"]])
    assert caught.value.variable == 2
    with pytest.raises(ShapeMismatch):
        tabulate([x], [[]])
    with pytest.raises(InvalidParameter):
        Dimension.from_tree("x", {TOTAL: ["a"], "a": ["b"], "b": ["a"]})
    with pytest.raises(InvalidParameter):
        Dimension("x", (TOTAL, "a", "a"), [-1, 0, 0])


def test_summation_finds_internal_cells_and_recomputes_margins():
    for shape in ((2, 3), (2, 2, 3)):
        relations = tabulate_grid(shape)
        summation = Summation.from_relations(relations)
        assert summation is not None
        assert len(summation.internal) == np.prod(shape)
        rng = np.random.default_rng(0)
        assert not np.any(relations @ summation.recompute_margins(rng.integers(0, 9, relations.shape[1])))


def test_summation_is_none_for_a_total_with_two_breakdowns():
    from scipy import sparse

    assert Summation.from_relations(sparse.csr_matrix([[1.0, 1, 0, 0, -1], [0, 0, 1, 1, -1]])) is None


def tabulate_grid(shape):
    from scipy import sparse

    return sparse.csr_matrix(grid_relations(shape))


@pytest.mark.reference
def test_survey_by_activity_and_region_is_additive():
    survey = pd.read_csv(reference_file("business_survey.csv"), dtype=str)
    activity = Dimension.from_levels("activity", survey["a10"], survey["a21"], survey["a88"])
    region = Dimension.from_levels("region", survey["nuts1"], survey["nuts2"], survey["nuts3"])
    codes = [activity.labels(2, survey["a88"]), region.labels(2, survey["nuts3"])]
    table = tabulate([activity, region], codes)
    counts = table.totals(codes, np.ones(len(survey)))
    assert counts.max() == len(survey)
    assert not np.any(table.relations @ counts)
