"""Tests of finished tables from other software: padded codes, own total marks, inner cells only."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.tables.given_cells import prepared
from microguard.pipelines.tables.problem import rule_table
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.table import Table

from tests.attacks.suppression.office import cells_of_finished, of_finished

LEAVES = {"A1": "A", "A2": "A", "B1": "B"}


def rows(codes, **numbers):
    frame = pd.DataFrame(codes).rename(columns=lambda each: f"c{each}")
    return frame.assign(**{f"n{i}": values for i, values in enumerate(numbers.values())})


def inner(seed=0):
    rng = np.random.default_rng(seed)
    codes = list(product(LEAVES, "xyz"))
    tops = np.sort(rng.integers(0, 50, (len(codes), 2)), axis=1)[:, ::-1]
    return rows(
        codes, v=tops.sum(axis=1) + 7.0, n=rng.integers(2, 9, len(codes)), t1=tops[:, 0], t2=tops[:, 1]
    )


def test_prepared_strips_blanks_and_maps_the_total_mark_of_each_column():
    table = Table(source="cells", value="v", tables=[["a", "b"]], totals={"b": "land"})
    read = prepared(rows([("Total", " land"), ("  x ", "land"), ("x", "Kreis ")], v=[3.0, 3.0, 3.0]), table)
    assert read[["c0", "c1"]].to_numpy().tolist() == [["Total", "Total"], ["x", "Total"], ["x", "Kreis"]]


def test_prepared_refuses_a_total_mark_that_is_also_a_code():
    table = Table(source="cells", value="v", tables=[["a"]], totals={"a": "all"})
    with pytest.raises(InputRejected, match="in addition to the total mark 'all'"):
        prepared(rows([("all",), ("Total",)], v=[1.0, 1.0]), table)


def test_prepared_names_the_column_without_a_total():
    table = Table(source="cells", value="v", tables=[["a", "b"]])
    with pytest.raises(InputRejected, match=r"No cell has the total mark 'Total' in a: set table.total"):
        prepared(rows([("all", "Total"), ("x", "Total")], v=[1.0, 1.0]), table)


@pytest.mark.parametrize("column", ["c0", "c1"])
def test_prepared_refuses_to_compute_margins_of_cells_that_have_them_under_another_mark(column):
    table = Table(source="cells", value="v", tables=[["a", "b"]], margins="computed")
    given = inner()[["c0", "c1", "n0"]]
    other = next(each for each in ("c0", "c1") if each != column)
    totals = given.groupby(other, as_index=False)["n0"].sum().assign(**{column: "TOTAL"})
    prepared(given, table)
    with pytest.raises(InputRejected, match=f"one code of {'ab'[int(column[1])]} has the sum of all other"):
        prepared(pd.concat([given, totals], ignore_index=True), table)


@pytest.mark.parametrize("seed", range(5))
def test_prepared_computes_margins_as_the_sums_of_internal_cells(seed):
    table = Table(
        source="cells", value="v", contributors="n", largest=["t1", "t2"], tables=[["a", "b"]],
        parents={"a": LEAVES}, margins="computed",
    )  # fmt: skip
    given = inner(seed)
    assert table.numbers == ("v", "n", "t1", "t2")
    read = prepared(given.sample(frac=1, random_state=seed), table).set_index(["c0", "c1"])
    assert len(read) == (3 + 2 + 1) * (3 + 1)
    for a, b in product([*LEAVES, "A", "B", "Total"], ["x", "y", "z", "Total"]):
        inside = [
            (a in ("Total", row.c0, LEAVES[row.c0])) and (b in ("Total", row.c1))
            for row in given.itertuples()
        ]
        part = given[inside]
        top = sorted([*part.n2, *part.n3], reverse=True)[:2]
        assert read.loc[(a, b)].tolist() == [part.n0.sum(), part.n1.sum(), *top]


def test_prepared_computes_margins_of_columns_that_nest():
    table = Table(
        source="cells", value="v", tables=[["fine"]], hierarchies=[["coarse", "fine"]], margins="computed"
    )
    read = prepared(rows([("A", "A1"), ("A", "A2"), ("B", "B1")], v=[1.0, 2.0, 4.0]), table)
    found = {(each.c0, each.c1): each.n0 for each in read.itertuples()}
    assert found == {
        ("A", "A1"): 1, ("A", "A2"): 2, ("B", "B1"): 4, ("A", "Total"): 3, ("B", "Total"): 4,
        ("Total", "Total"): 7,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (Table(source="cells", value="v", tables=[["a"], ["b"]], margins="computed"), "with 2 tables"),
        (
            Table(
                source="cells",
                value="v",
                tables=[["a", "b"]],
                lower_protection="l",
                upper_protection="u",
                margins="computed",
            ),
            "with the column",
        ),
    ],
)
def test_prepared_refuses_margins_that_it_cannot_compute(table, message):
    with pytest.raises(InputRejected, match=message):
        prepared(rows([("x", "y")], v=[1.0], lower=[0.0], upper=[0.0]), table)


def rules_by_shadow(shadow, capacity=100.0):
    """Return the rules for two cells and their total; the first has a largest contribution of 90."""
    frame = pd.DataFrame({"a": ["x", "y", "Total"], "v": [1000.0, 500.0, 1500.0], "m": [90.0, 10.0, 90.0]})
    given = {"value": "v", "tables": [["a"]], "largest": ["m"], "shadow": "s", "decimals": 0}
    given |= {"dominance": {"n": 1, "k": 80.0}, "capacity": capacity}
    frame = frame.assign(s=shadow)
    spec = of_finished(frame, given)
    return rule_table(cells_of_finished(frame, spec.table), spec)


def test_dominance_rule_uses_the_shadow_variable_if_it_is_smaller():
    assert rules_by_shadow([100.0, 50.0, 150.0]).sensitive.tolist() == [False, True, False]
    assert not rules_by_shadow([1000.0, 500.0, 1500.0]).sensitive.any()


def test_nonnegativity_is_public_knowledge_if_the_shadow_variable_is_larger():
    table = rules_by_shadow([2000.0, 900.0, 2900.0], capacity=200.0)
    assert (table.lower_capacity <= table.values).all()


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("n", 0, "3 cell.s. have another number in n than one of contributors"),
        ("n", -1, "1 cell.s. have another number in n"),
        ("n", 2.5, "1 cell.s. have another number in n"),
        ("second", 80.0, "1 cell.s. have a larger contribution in second than in first"),
        ("status", "E", "1 cell.s. are empty by their code in status"),
        ("n", 5, None),
    ],
)
def test_cells_that_contradict_themselves_are_refused_and_not_taken_as_safe(column, value, message):
    frame = pd.DataFrame(
        {"a": ["x", "y", "Total"], "v": [100.0, 100.0, 200.0], "n": [5.0, 5.0, 10.0], "first": 30.0,
         "second": 20.0, "status": "S"}
    )  # fmt: skip
    frame[column] = frame[column].astype(type(value))
    frame.loc[: 2 if value == 0 else 0, column] = value
    spec = of_finished(frame, {
        "tables": [["a"]], "value": "v", "contributors": "n", "largest": ["first", "second"],
        "status": "status", "statuses": {"S": "safe", "U": "sensitive", "E": "empty"},
    })  # fmt: skip
    if message is None:
        assert len(cells_of_finished(frame, spec.table)) == 3
        return
    with pytest.raises(InputRejected, match=message):
        cells_of_finished(frame, spec.table)


def test_status_of_an_empty_cell_is_accepted():
    frame = pd.DataFrame({"a": ["x", "y", "Total"], "v": [0.0, 9.0, 9.0], "status": ["E", "S", "S"]})
    spec = of_finished(frame, {"tables": [["a"]], "value": "v", "status": "status",
                               "statuses": {"S": "safe", "E": "empty"}})  # fmt: skip
    cells = cells_of_finished(frame, spec.table)
    assert not rule_table(cells, spec).sensitive.any()
