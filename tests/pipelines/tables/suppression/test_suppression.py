"""Tests of suppressed tables without Spark, from cells to counted files."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.evidence import page as evidence_page
from microguard.pipelines.guarantees.feasible_intervals import determined, too_narrow
from microguard.pipelines.guarantees.original_cells import Contributed, OriginalCells
from microguard.pipelines.guarantees.suppressed_table import SuppressedTable
from microguard.pipelines.guarantees.table_files import table_files
from microguard.pipelines.measures.registry import measures_of
from microguard.pipelines.method import table_method
from microguard.pipelines.tables.files import FOLDER
from microguard.pipelines.tables.files import published as published_contents
from microguard.pipelines.tables.suppression.kept_tables import kept_original
from microguard.schemas.errors import InputRejected, SpecificationError
from microguard.schemas.requirements.requirement import MetricKey
from microguard.schemas.specification.tau_argus import parents_of
from microguard.sdc.errors import InvalidParameter
from microguard.sdc.suppression import SuppressionProblem, audit, neighbourhoods
from scipy import sparse

import microguard
from tests.attacks.office import specification
from tests.attacks.suppression.office import (
    SuppressingOffice,
    cells_of_finished,
    cells_of_firms,
    of_finished,
)
from tests.attacks.test_suppressed_cells import chosen, firms
from tests.reference import reference_file

#: A finished table: one contributor in (x, p), two contributors of 0 in (x, r).
FINISHED = """a,b,v,n,s
Total,Total,440,48,
Total,p,250,15,
Total,q,160,23,
Total,r,30,10,
x,Total,140,8,
x,p,100,1,
x,q,40,5,
x,r,0,2,{zero}
y,Total,150,20,
y,p,80,7,
y,q,60,9,
y,r,10,4,{ten}
z,Total,150,20,
z,p,70,7,
z,q,60,9,
z,r,20,4,
"""
KEYS = {"value": "v", "tables": [["a", "b"]], "contributors": "n", "decimals": 0}


def finished(zero="", ten="", **table):
    """Return the cells of the finished table and their specification."""
    rows = [line.split(",") for line in FINISHED.format(zero=zero, ten=ten).splitlines()]
    frame = pd.DataFrame(rows[1:], columns=rows[0])
    given = {**KEYS, **({"status": "s"} if zero or ten else {}), **table}
    frame = frame.replace({"s": {"": None}})
    spec = of_finished(frame if "status" in given else frame.drop(columns="s"), given)
    return cells_of_finished(frame, spec.table), spec


def status_of(published):
    rows = published.frame()
    return {(a, b): status for a, b, status in zip(rows["a"], rows["b"], rows["status"], strict=True)}


def test_cell_with_one_contributor_is_suppressed_with_secondary_cells_that_preserve_its_interval(tmp_path):
    cells, spec = finished()
    published = SuppressingOffice(tmp_path).publish(cells, spec)
    assert published.broken == []
    status = status_of(published)
    assert status["x", "p"] == "suppressed"
    assert sum(each == "suppressed" for each in status.values()) == 4
    listed = pq.read_table(published.evidence / "cells.parquet").to_pandas()
    row = listed[(listed["code_a"] == "x") & (listed["code_b"] == "p")].iloc[0]
    for attacker in ("outsider", "single", "pair", "unit"):
        assert row[f"lowest_{attacker}"] <= 80
        assert row[f"highest_{attacker}"] >= 120
    assert listed.loc[~listed["sensitive"], "lowest_outsider"].isna().all()
    section = published.protected.comparison.sections
    assert section["suppression"]["suppressed"] == 4
    assert section["suppression"]["secondary"] == 3
    assert section["intervals"]["single"]["too_narrow"] == 0


def test_suppression_publishes_fixed_cells_and_hides_values_of_required_suppressions(tmp_path):
    free = status_of(SuppressingOffice(tmp_path / "free").publish(*finished()))
    secondary = next(cell for cell, each in free.items() if each == "suppressed" and cell != ("x", "p"))
    a_priori = tmp_path / "known.csv"
    a_priori.write_text(f"a,b,status\n{secondary[0]},{secondary[1]},fixed\nz,r,suppressed\n")
    cells, spec = finished(a_priori=str(a_priori))
    published = SuppressingOffice(tmp_path / "known").publish(cells, spec)
    assert published.broken == []
    status = status_of(published)
    assert status[secondary] == "published"
    assert status["z", "r"] == "suppressed"


def test_sensitive_zero_without_a_protection_level_is_refused_by_name(tmp_path):
    with pytest.raises(InputRejected, match=r"no protection level.*zero_safety_range"):
        SuppressingOffice(tmp_path).publish(*finished(zero="sensitive"))


def test_zero_with_a_safety_range_is_protected_upwards(tmp_path):
    cells, spec = finished(zero="sensitive", zero_safety_range=5.0, capacity=100.0)
    published = SuppressingOffice(tmp_path).publish(cells, spec)
    assert published.broken == []
    listed = pq.read_table(published.evidence / "cells.parquet").to_pandas()
    row = listed[(listed["code_a"] == "x") & (listed["code_b"] == "r")].iloc[0]
    assert row["highest_outsider"] >= 5


@pytest.mark.parametrize(
    ("table", "refused"),
    [
        ({"costs": "unit"}, "costs: .*value, number, contributors"),
        ({"relax": ["capacities"]}, "relax"),
        ({"mode": "exact"}, "not applicable with method suppression"),
        ({"attackers": ["single"]}, "outsider"),
        ({"attackers": ["outsider", "spy"]}, "attackers"),
        ({"holding": "firm"}, "holding"),
        ({"quality": {"max_gap": 0.1}}, "max_gap"),
    ],
)
def test_suppression_refuses_keys_that_it_does_not_use(table, refused):
    with pytest.raises(SpecificationError, match=refused):
        chosen(firms(1).drop(columns="firm"), **table)


def test_other_methods_refuse_keys_of_suppression():
    for key, value in (("attackers", ["outsider"]), ("costs", "value"), ("quality", {"max_suppressed": 0.1})):
        with pytest.raises(SpecificationError, match=r"not applicable with method adjustment|costs"):
            specification(firms(1), {"value": "turnover", "tables": [["activity", "region"]], key: value})


@pytest.mark.parametrize("costs", ["number", "value", "contributors"])
def test_suppression_minimises_each_specified_cost(tmp_path, costs):
    frame = firms(2)
    published = {}
    for name in {"number", "value", "contributors"}:
        spec = chosen(frame, costs=name, attackers=["outsider"])
        published[name] = SuppressingOffice(tmp_path / name).publish(cells_of_firms(frame, spec), spec)
    price = published[costs].protected.comparison.problem.costs
    assert published[costs].protected.comparison.proof.optimal
    least = min(float(price[each.suppressed].sum()) for each in published.values())
    assert float(price[published[costs].suppressed].sum()) == pytest.approx(least)


def test_table_without_numbers_of_contributors_guarantees_nothing_to_contributors(tmp_path):
    cells, spec = finished(ten="sensitive", contributors=None)
    product = table_method(spec).product()
    assert product.guarantee.attackers == ("outsider",)
    assert "not counted for the only contributor of a cell" in product.guarantee.limits[0]
    assert SuppressingOffice(tmp_path).publish(cells, spec).broken == []
    with pytest.raises(SpecificationError, match=r"attackers.*unless table\.contributors"):
        finished(ten="sensitive", contributors=None, attackers=["outsider", "single"])


def test_guarantee_to_contributors_fails_if_contributors_are_unknown(tmp_path):
    cells, spec = finished(ten="sensitive", contributors=None)
    published = SuppressingOffice(tmp_path).publish(cells, spec)
    product = table_method(spec).product()
    original = replace(product.original(published.protected)[0], contributed=None)
    with table_files(published.files, published.layout, original) as files:
        metrics = SuppressedTable(("outsider", "single")).count(files).metrics
    assert metrics[MetricKey("intervals_too_narrow", "outsider")] == 0
    assert metrics[MetricKey("intervals_too_narrow", "single")] == 1


def test_limits_of_a_suppressed_table_name_the_attackers_that_were_counted():
    _, spec = finished()
    every = table_method(spec).product().guarantee
    assert "It was not counted" not in every.limits[0]
    assert "The input contained numbers of contributors" in every.limits[0]
    assert SuppressedTable.from_manifest({"method": every.method()}) == every
    readers = SuppressedTable(("outsider",)).limits[0]
    assert "counted for every reader. It was not counted for the only contributor" in readers


def test_count_on_the_files_detects_a_published_secondary_cell(tmp_path):
    cells, spec = finished()
    published = SuppressingOffice(tmp_path).publish(cells, spec)
    original = kept_original(published.evidence, published.layout)
    path = next((published.files / FOLDER).glob("*.parquet"))
    rows = pq.read_table(path).to_pandas()
    secondary = rows[(rows["status"] == "suppressed") & ~((rows["a"] == "x") & (rows["b"] == "p"))].index[0]
    true = dict(zip(map(tuple, cells.codes.to_numpy()), cells.units, strict=True))
    rows["v"] = rows["v"].astype("Int64")
    rows.loc[secondary, "v"] = int(true[tuple(rows.loc[secondary, ["a", "b"]])])
    rows.loc[secondary, "status"] = "published"
    rows.to_parquet(path, index=False)
    with table_files(published.files, published.layout, original) as files:
        metrics = SuppressedTable(("outsider", "single")).count(files).metrics
    assert metrics[MetricKey("cells_by_subtraction")] == 3
    assert metrics[MetricKey("intervals_too_narrow", "outsider")] == 1


@pytest.mark.parametrize("large", [False, True])
def test_widths_of_contributors_and_of_large_tables_are_stated_as_at_least(tmp_path, monkeypatch, large):
    if large:  # programs cover the cells near a primary
        monkeypatch.setattr(import_module("microguard.sdc.suppression.intervals"), "_WHOLE", -1)
        monkeypatch.setattr(neighbourhoods, "NEAR", (6, 10))
    published = SuppressingOffice(tmp_path).publish(*finished())
    assert published.broken == []
    section = published.protected.comparison.sections["intervals"]
    assert [row["exact"] for row in section.values()] == [not large, False, False, False]
    measure = next(each for each in measures_of("table", ("intervals",)) if each.name == "intervals")
    sentences = [sentence for _, sentence in measure.attacks(section, 3)]
    assert [" is at least " in sentence for sentence in sentences] == [large, True, True, True]
    template = evidence_page._environment().get_template("sections/intervals.html")
    assert template.render(section=section).count(">at least ") == 2 * (4 if large else 3)


def random_table(seed):
    """Return a two-way table with random values, primary cells and suppressed cells."""
    random = np.random.default_rng(seed)
    rows, columns = random.integers(3, 6, 2)
    inner = random.integers(0, 40, (rows, columns)).astype(float)
    table = np.zeros((rows + 1, columns + 1))
    table[1:, 1:] = inner
    table[0], table[1:, 0] = np.concatenate([[inner.sum()], inner.sum(0)]), inner.sum(1)
    number = np.arange(table.size).reshape(table.shape)
    lines = []
    for line in (*number, *number.T):
        entries = np.zeros(table.size)
        entries[line[0]], entries[line[1:]] = -1, 1
        lines.append(entries)
    values = table.ravel()
    primary = (random.random(table.size) < 0.15) & (values > 3)
    suppressed = primary | (random.random(table.size) < 0.4)
    return values, sparse.csr_matrix(np.array(lines)), primary, suppressed


@pytest.mark.parametrize("seed", range(25))
def test_count_of_too_narrow_intervals_equals_the_audit_of_the_method(seed):
    values, relations, primary, suppressed = random_table(seed)
    level = np.where(primary, np.ceil(values * 0.3), 0.0)
    problem = SuppressionProblem(values, relations, primary, level, level)
    original = OriginalCells(pd.DataFrame(), values, level, level, primary, values, values)
    narrow = too_narrow(relations, suppressed, original)["outsider"]
    assert narrow == int(audit(problem, suppressed, attackers=("outsider",)).too_narrow.sum())


def test_errors_of_the_program_of_a_large_cell_do_not_widen_the_interval_of_a_small_cell():
    """Cells 2 and 3 can move by 1 and need 50; in the program of cell 0, of level 1e9, 50 are an error."""
    relations = sparse.csr_matrix(np.array([[1.0, 1, 1, 0], [0, 0, 1, 1]]))
    values = np.array([4e9, -4e9, 0.0, 0.0])
    sensitive, suppressed = np.array([True, False, True, False]), np.ones(4, bool)
    level, room = np.array([1e9, 0, 50, 0]), np.array([2e9, 2e9, 100, 1])
    original = OriginalCells(pd.DataFrame(), values, level, level, sensitive, room, room)
    assert too_narrow(relations, suppressed, original)["outsider"] == 1


def test_single_contributor_of_a_published_cell_is_counted_as_an_attacker_of_other_cells():
    """A total of 30 has parts a, b and c of 10: unit 9 is alone in c and contributes 9 of b."""
    values, level = np.array([30.0, 10, 10, 10]), np.array([0.0, 5, 0, 0])
    relations, suppressed = sparse.csr_matrix([[-1.0, 1, 1, 1]]), np.array([False, True, True, False])
    contributed = Contributed(
        np.array([1, 1, 1, 2, 2, 2, 3]), np.array([1, 2, 3, 9, 4, 5, 9]), np.array([4, 3, 3, 9, 0.5, 0.5, 10])
    )
    original = OriginalCells(
        pd.DataFrame(), values, level, level, level > 0, values, values, contributed=contributed
    )
    kinds = ("outsider", "single", "pair")
    assert too_narrow(relations, suppressed, original, kinds) == {"outsider": 0, "single": 1, "pair": 0}


@pytest.mark.parametrize("seed", range(10))
def test_cells_determined_by_sums_equal_the_cells_outside_the_null_space(seed):
    _, relations, _, suppressed = random_table(seed)
    matrix = relations[:, np.flatnonzero(suppressed)].toarray()
    *_, right = np.linalg.svd(matrix)
    null = right[np.linalg.matrix_rank(matrix) :]
    assert determined(relations, suppressed) == int(np.sum(np.abs(null).sum(axis=0) < 1e-9))


@pytest.mark.parametrize("decimals", [0, 2])
@pytest.mark.parametrize("suppression", [True, False])
def test_cell_without_a_value_is_null_for_every_method(decimals, suppression):
    cells, spec = finished(decimals=decimals)
    units = np.where(np.arange(len(cells)) == 3, np.nan, cells.units)
    (content,) = published_contents(cells.codes, units, spec.table, suppression=suppression).values()
    assert content["v"].null_count == 1
    assert sum(each for each in content["v"].to_pylist() if each is not None) * 10**decimals == np.nansum(
        units
    )


def test_published_list_of_cells_has_no_value_for_suppressed_cells(tmp_path):
    published = SuppressingOffice(tmp_path).publish(*finished())
    kept = pq.read_table(published.evidence / "published_cells.parquet").to_pandas()
    assert set(kept["status"]) == {"true", "suppressed"}
    assert (kept["value"].isna() == (kept["status"] == "suppressed")).all()
    assert json.loads(kept["codes"].iloc[0]) == []


def tau_argus_table(**table):
    """Return the table of the reference files of tau-ARGUS: size by region."""
    columns = ["Size", "Region", "Var2", "FreqVar", "Shadow", "Cost", "Top1", "Top2", "Status", "L", "U"]
    path = reference_file("tauargus/tableinput/pp.tab")
    frame = pd.read_csv(path, sep=";", names=columns, dtype=str, keep_default_na=False)
    for name in ("Var2", "FreqVar", "Top1", "Top2"):
        frame[name] = frame[name].str.replace(",", ".").astype(float)
    parents = parents_of(reference_file("tauargus/region2.hrc"), "@")
    given = {"value": "Var2", "tables": [["Size", "Region"]], "decimals": 2, "tolerance": 1.0,
             "parents": {"Region": parents}, "contributors": "FreqVar", **table}  # fmt: skip
    spec = of_finished(frame, given)
    return cells_of_finished(frame, spec.table), spec


def test_suppress_table_refuses_rows_without_a_code_or_a_unit():
    for name in ("activity", "firm"):
        frame = firms(2).astype({name: object})
        frame.loc[3, name] = None
        with pytest.raises(InvalidParameter, match=f"{name}: expected a value in every row"):
            microguard.suppress_table(frame, ["activity", "region"], "turnover", unit="firm")


def test_suppress_table_derives_protection_levels_of_cancelling_amounts_from_their_absolute_values():
    frame = pd.DataFrame({"a": list("xxyyyzzz"), "v": [100.0, -99, 50, 60, 70, 50, 60, 70]})
    table = microguard.suppress_table(frame, ["a"], "v", nk=None)
    assert table.private["highest"][table.frame["a"] == "x"].item() == pytest.approx(1 + 0.2 * 199)


def test_suppress_table_suppresses_a_frame_according_to_its_specification(tmp_path):
    frame = firms(2)
    table = microguard.suppress_table(frame, ["activity", "region"], "turnover", unit="firm", nk=None, p=10.0)
    spec = chosen(frame)
    published = SuppressingOffice(tmp_path).publish(cells_of_firms(frame, spec), spec)
    assert int((table.frame["status"] == "suppressed").sum()) == int(published.suppressed.sum())
    assert table.frame["turnover"].isna().equals(table.frame["status"] == "suppressed")
    assert table.private["sensitive"].sum() == published.protected.comparison.by_rule.sensitive.sum()
    assert table.suppression.audit.protected


def test_frame_and_page_state_that_no_lower_bound_was_proved():
    table = microguard.suppress_table(firms(2), ["activity", "region"], "turnover", unit="firm")
    unproved = replace(table.suppression, lower_bound=0.0, stopped_by="work")
    assert unproved.gap is None
    assert "no lower bound was proved" in repr(replace(table, suppression=unproved))
    section = {"levels": [], "costs": "value", "cost": 3.0, "lower_bound": 0.0, "gap": None, "optimal": False}
    text = evidence_page._environment().get_template("sections/suppression.html").render(section=section)
    assert "no lower bound was proved" in text
    assert "gap" not in text


def test_suppressed_frame_is_shown_as_a_grid_that_marks_all_suppressed_cells_alike():
    frame = firms(2)
    table = microguard.suppress_table(frame, ["activity", "region"], "turnover", unit="firm")
    hidden = int((table.frame["status"] == "suppressed").sum())
    assert table.grid(100, 100).split().count("x") == hidden > int(table.private["sensitive"].sum())
    assert f"{hidden} of {len(table.frame)} cells suppressed" in repr(table)
    assert "codes; the first 2 x 2 are shown" in table.grid(2, 2)
    one = microguard.suppress_table(frame, ["activity"], "turnover", unit="firm")
    assert one.grid().splitlines()[0].split() == ["turnover"]
