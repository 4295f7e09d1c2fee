"""Tests of successive suppressed tables of the same records: what a later table must preserve."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.guarantees.suppressed_table import SuppressedTable
from microguard.pipelines.guarantees.table_files import table_files
from microguard.pipelines.tables.suppression.kept_tables import kept_original
from microguard.schemas.errors import GateRefused

from tests.attacks.office import specification
from tests.attacks.suppression.office import SuppressingOffice, cells_of_finished, cells_of_firms, of_finished
from tests.attacks.test_suppressed_cells import firms
from tests.pipelines import turnover


def test_linked_table_keeps_published_and_suppressed_cells_and_earlier_intervals(tmp_path):
    frame = turnover.records().assign(size=lambda each: np.where(each["turnover"] > 100, "big", "small"))
    keys = {"value": "turnover", "hierarchies": [["a10", "a21"]], "decimals": 1, "method": "suppression"}
    office = SuppressingOffice(tmp_path)
    tables = []
    for name, dimension in (("first", "region"), ("second", "size"), ("third", "region")):
        spec = specification(frame, {**keys, "tables": [["a21", dimension]]}, name=name, source="survey")
        tables.append(office.publish(cells_of_firms(frame, spec), spec))
        assert tables[-1].broken == []
    first, second, third = (
        {
            tuple(
                (name, code) for name, code in row.items() if name in ("a10", "a21") and other == "Total"
            ): each
            for row, other, each in zip(
                table.cells.codes.to_dict("records"),
                table.cells.codes[dimension],
                table.suppressed,
                strict=True,
            )
        }
        for table, dimension in zip(tables, ("region", "size", "region"), strict=True)
    )
    assert all(second[cell] == hidden for cell, hidden in first.items() if cell)
    assert np.array_equal(tables[0].suppressed, tables[2].suppressed)
    joined = tables[1].protected.comparison.joined
    assert joined.problem.cells > len(tables[1].cells)
    original = kept_original(tables[1].evidence, tables[1].layout)
    assert original.earlier is not None
    with table_files(tables[1].files, tables[1].layout, original) as files:
        count = SuppressedTable(spec.table.attackers).count(files)
    assert count.metrics == tables[1].written.count.metrics
    assert third is not None


def two_tables(frame, **second):
    """Return specifications of two linked tables of one survey."""
    for name, region, further in (("first", "region", {}), ("second", "size", second)):
        table = {"value": "turnover", "tables": [["activity", region]], "decimals": 0, **further}
        yield specification(frame, {**table, "method": "suppression"}, name=name, source="survey")


@pytest.mark.parametrize("lost", ["suppressed_cells", "lines", "contributions"])
def test_table_is_refused_if_the_evidence_of_an_earlier_table_is_lost(tmp_path, lost):
    frame = firms(1).assign(size=lambda each: np.where(each["turnover"] > 60, "big", "small"))
    first, second = two_tables(frame)
    office = SuppressingOffice(tmp_path)
    published = office.publish(cells_of_firms(frame, first), first)
    (published.evidence / f"{lost}.parquet").unlink()
    with pytest.raises(GateRefused, match=rf"release0 is lost: expected {lost}.parquet"):
        office.publish(cells_of_firms(frame, second), second)


def test_table_is_refused_if_it_considers_fewer_attackers_than_an_earlier_table(tmp_path):
    frame = firms(1).assign(size=lambda each: np.where(each["turnover"] > 60, "big", "small"))
    first, second = two_tables(frame, attackers=["outsider", "unit"])
    office = SuppressingOffice(tmp_path)
    office.publish(cells_of_firms(frame, first), first)
    with pytest.raises(GateRefused, match=r"release0 .* expected pair, single in table\.attackers"):
        office.publish(cells_of_firms(frame, second), second)


def test_linked_table_is_refused_with_the_release_if_the_source_of_suppressed_values_was_revised(tmp_path):
    few = pd.DataFrame(
        {
            "activity": list("AAAABBBB"),
            "region": list("nesw") * 2,
            "size": ["big", "small"] * 4,
            "turnover": [100.0, 1, 1, 1, 80, 2, 2, 2],
        }
    )
    many = [few.assign(activity=few["activity"].replace({"A": "C", "B": "D"})) for _ in range(5)]
    frame = pd.concat([few, *many], ignore_index=True).assign(firm=lambda each: np.arange(len(each)))
    first, second = two_tables(frame)
    office = SuppressingOffice(tmp_path)
    office.publish(cells_of_firms(frame, first), first)
    frame.loc[[0, 4], "turnover"] += [7.0, -7.0]  # of the suppressed cells A and B, in the same region
    with pytest.raises(GateRefused, match=r"published before, by release0: .* found a difference"):
        office.publish(cells_of_firms(frame, second), second)


def test_published_cell_that_a_stricter_rule_makes_sensitive_is_refused_with_the_release(tmp_path):
    frame = firms(1)
    office = SuppressingOffice(tmp_path)
    mild, strict = (
        specification(
            frame,
            {"value": "turnover", "tables": [["activity", "region"]], "decimals": 0, "method": "suppression",
             "minimum_frequency": least, "p_percent": 1.0},
            name=name, source="survey",
        )
        for name, least in (("mild", 2), ("strict", 6))
    )  # fmt: skip
    office.publish(cells_of_firms(frame, mild), mild)
    with pytest.raises(
        GateRefused,
        match=r"that are sensitive by the rule were published before with their values, by release0",
    ):
        office.publish(cells_of_firms(frame, strict), strict)


@pytest.mark.parametrize("decimals", [0, 1])
def test_refusal_of_a_total_summed_from_rounded_parts_names_the_rounding(tmp_path, decimals):
    inner = pd.DataFrame(
        {"a": list("xxxyyy"), "b": list("pqr") * 2, "v": [10.4, 20.4, 30.4, 40.0, 50.0, 60.0], "n": 9.0}
    )
    margins = [inner.groupby(by, as_index=False)[["v", "n"]].sum() for by in ("a", "b")]
    margin = pd.concat([margins[0], inner[["v", "n"]].sum().to_frame().T], ignore_index=True)
    whole = pd.concat([inner, margin, margins[1]], ignore_index=True)
    office = SuppressingOffice(tmp_path)
    rule = {"value": "v", "contributors": "n", "decimals": decimals, "minimum_frequency": 3, "tolerance": 2.0}

    def publish(frame, *dimensions):
        frame = frame[[*dimensions, "v", "n"]].fillna("Total")
        spec = of_finished(frame, {**rule, "tables": [list(dimensions)]})
        return office.publish(cells_of_finished(frame, spec.table), spec)

    publish(margin, "a")
    if decimals:
        assert publish(whole, "a", "b").broken == []
        return
    with pytest.raises(
        GateRefused, match=r"other values, which can be explained by the rounding .* table\.decimals = 0 "
    ):
        publish(whole, "a", "b")


@pytest.mark.parametrize("weighted", [False, True], ids=["weighted later", "weighted first"])
def test_weighted_table_next_to_an_unweighted_one_of_the_same_records_is_refused(tmp_path, weighted):
    """Cells of large firms, whose weights are 1, would be published twice, with other cells suppressed."""
    frame = firms(1).assign(weight=lambda each: np.where(each["turnover"] > 60, 1.0, 3.0))
    specs = [
        specification(
            frame,
            {"value": "turnover", "tables": [["activity", "region"]], "decimals": 0, "method": "suppression",
             "weighted": each},
            name=f"weighted_{each}", source="survey",
        )
        for each in (weighted, not weighted)
    ]  # fmt: skip
    office = SuppressingOffice(tmp_path)
    tables = [cells_of_firms(frame, spec) for spec in specs]
    office.publish(tables[0], specs[0])
    with pytest.raises(
        GateRefused, match=r"weights, by release0, and have the same amount.* Set table\.weighted as"
    ):
        office.publish(tables[1], specs[1])


def test_weighted_table_next_to_an_unweighted_one_is_published_if_no_weight_is_one(tmp_path):
    frame = firms(1).assign(weight=lambda each: 2.0 + each["firm"] % 5)
    office = SuppressingOffice(tmp_path)
    for weighted in (False, True):
        table = {"value": "turnover", "tables": [["activity", "region"]], "decimals": 0, "weighted": weighted}
        spec = specification(frame, {**table, "method": "suppression"}, name=str(weighted), source="survey")
        assert office.publish(cells_of_firms(frame, spec), spec).broken == []
