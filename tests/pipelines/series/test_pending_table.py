"""Tests of a pending table: no cell gets a second value if it was published in the meantime."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from microguard.pipelines.approval import approve, reject
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.pending_approval import PendingRelease
from microguard.pipelines.publication.stage import StagedFiles
from microguard.pipelines.series.pending_table import refuse_second_values
from microguard.pipelines.tables.published_before import PublishedCell
from microguard.pipelines.tables.published_cells import write_published_cells
from microguard.schemas.errors import GateRefused

from tests.pipelines.published_tables import tables
from tests.pipelines.releases import ID, entry
from tests.pipelines.turnover import records, specification

RULE = {"dominance": None, "p_percent": 15.0}


def of_table(folder, name, path, seed, approval, **table):
    """Return a specification of a table of the firms, the first one or another one."""
    chosen = specification(folder, records(), release={"name": name, "seed": seed}, **RULE, **table)
    publish = chosen.publish.model_copy(update={"path": path, "approval": approval})
    return chosen.model_copy(update={"publish": publish})


AMOUNTS = {"A": 812_344, "B": 95_120, "C": 40_778, "D": 5_031_990, "E": 1_207_655, "F": 0}


@pytest.mark.parametrize(
    ("values", "refused"),
    [
        ({code: round(amount / 1000) for code, amount in AMOUNTS.items()}, True),
        (dict(zip(AMOUNTS, reversed(AMOUNTS.values()), strict=True)), False),
        ({code: 100 * AMOUNTS[code] for code in "ABCD"}, True),
        ({code: 100 * AMOUNTS[code] for code in "AB"}, False),
        ({"A": 812_344, "B": 97_000, "C": 40_778, "D": 5_031_990}, False),
    ],
    ids=["thousands", "other amounts", "cents, four cells", "cents, two cells", "one of four cells differs"],
)
def test_approve_refuses_a_pending_table_if_the_same_amounts_were_published_in_another_unit(
    areas, values, refused
):
    other, table = "f" * 32, {"content": "table"}
    for release_id, name, amounts in ((ID, "turnover", AMOUNTS), (other, "sales", values)):
        cells = [
            PublishedCell(name, "", name, (("a21", code),), Decimal(amount), 0, release_id, Decimal(amount))
            for code, amount in amounts.items()
        ]
        write_published_cells(areas.record(release_id), cells)
    first, second = (replace(entry(each), identity=table) for each in (ID, other))
    waiting = PendingRelease(StagedFiles(ID, areas.evidence, {}), {}, first, False)
    if not refused:
        refuse_second_values(waiting, [second], areas)
        return
    with pytest.raises(GateRefused, match="second values"):
        refuse_second_values(waiting, [second], areas)


@pytest.mark.parametrize(
    ("differs", "refused"),
    [
        ({}, True),
        ({"release": {"name": "sections", "source": "turnover"}}, True),
        ({"table": {"value": "turnover", "weighted": True}}, False),
        ({"table": {"value": "sales"}}, False),
        ({"table": {"value": "sales", "parts": {"market": ["turnover", "abroad"]}}}, True),
        ({"release": {"name": "turnover", "period": "2025"}}, False),
    ],
    ids=["same", "other name", "weighted", "other variable", "part of it", "other period"],
)
def test_approve_refuses_a_pending_table_if_other_sums_of_its_variable_were_published(
    areas, differs, refused
):
    """All common cells were published before both: neither table was the first to publish one."""
    made_from = {"release": {"name": "turnover", "source": "turnover"}, "table": {"value": "turnover"}}
    first, second = (
        replace(entry(release_id), identity={"content": "table", "specification": {**made_from, **changed}})
        for release_id, changed in ((ID, {}), ("f" * 32, differs))
    )
    for each in (first, second):
        write_published_cells(areas.record(each.release_id), [])
    waiting = PendingRelease(StagedFiles(ID, areas.evidence, {}), {}, first, False)
    if not refused:
        refuse_second_values(waiting, [second], areas)
        return
    with pytest.raises(GateRefused, match="sums of it"):
        refuse_second_values(waiting, [second], areas)


@pytest.mark.spark
def test_approve_refuses_a_pending_table_if_its_cells_were_published_meanwhile(adjusted, tmp_path):
    areas = Areas.from_places(tmp_path / "lake", tmp_path / "evidence")
    waits = of_table(tmp_path, "turnover", "lake", 1, "required")
    waiting = adjusted(waits)["release_id"]
    sections = {"tables": [["a21"]], "hierarchies": None, "costs": "inverse"}
    (second,) = tables(adjusted(of_table(tmp_path, "sections", "elsewhere", 7, "none", **sections)))
    with pytest.raises(GateRefused, match="second values"):
        approve(str(areas.record(waiting)), by="A. Steward")
    assert areas.public.current() is None
    reject(str(areas.record(waiting)), by="A. Steward")
    anew = adjusted(waits)["release_id"]
    approve(str(areas.record(anew)), by="A. Steward")
    (first,) = tables({"release": str(areas.public.release(anew))})
    both = first[first["region"] == "Total"].merge(second, on="a21")
    both = both[(both["a21"] != "Total") | (both["a10"] == "Total")]
    assert (both["turnover_x"] == both["turnover_y"]).all()
