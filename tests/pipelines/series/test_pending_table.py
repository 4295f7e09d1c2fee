"""Tests of a pending table: no cell gets a second value if it was published in the meantime."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from microguard.pipelines.approval import approve, reject
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.pending_approval import PendingRelease
from microguard.pipelines.publication.source_fingerprints.source_fingerprint import FILE, SourceFingerprint
from microguard.pipelines.publication.source_fingerprints.unit_fingerprint import UnitFingerprint
from microguard.pipelines.publication.stage import StagedFiles
from microguard.pipelines.series.pending_table import refuse_second_values
from microguard.pipelines.tables.cells.identity import COUNT
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


PERSONS = {"A": 812, "B": 95, "C": 40, "D": 3, "E": 1}
HOUSEHOLDS = {"A": 402, "B": 41, "C": 22, "D": 3, "E": 0}
HALF_EQUAL = {"A": 402, "B": 41, "C": 40, "D": 3, "E": 1}
DISTINCTIVE = {"A": 812_344, "B": 41}


def unit_sample(first: int, count: int, size: int = 0) -> UnitFingerprint:
    """Return a sample of units with these keys, which has all units unless `size` is larger."""
    keys = np.arange(first, first + 2 * count, 2, dtype=np.uint64)
    return UnitFingerprint(keys, np.zeros((count, 0), np.uint64), size or count)


def write_counts(areas, release_id, source, amounts):
    """Write counts by area to the evidence of a release."""
    cells = [
        PublishedCell(source, "", COUNT, (("area", code),), None, 0, release_id, Decimal(count))
        for code, count in amounts.items()
    ]
    write_published_cells(areas.record(release_id), cells)


def expect_refusal(areas, pending, published, *, refused):
    """Compare a pending table with one that was published meanwhile."""
    waiting = PendingRelease(StagedFiles(ID, areas.evidence, {}), {}, pending, False)
    with pytest.raises(GateRefused, match="second values") if refused else nullcontext():
        refuse_second_values(waiting, [published], areas)


@pytest.mark.parametrize(
    ("persons", "counts", "units", "changed", "refused"),
    [
        (PERSONS, HOUSEHOLDS, (unit_sample(0, 50), unit_sample(1, 30)), {}, False),
        (PERSONS, HOUSEHOLDS, (unit_sample(0, 50), None), {}, True),
        (PERSONS, HOUSEHOLDS, (unit_sample(0, 50), unit_sample(98, 30)), {}, True),
        (PERSONS, HOUSEHOLDS, (unit_sample(0, 200, 9999), unit_sample(1, 200, 5000)), {}, False),
        (PERSONS, HOUSEHOLDS, (unit_sample(0, 200, 9999), unit_sample(1, 100)), {}, True),
        (PERSONS, HOUSEHOLDS, (unit_sample(0, 50), unit_sample(1, 30)), {"holding": "firm"}, True),
        (PERSONS, HALF_EQUAL, (unit_sample(0, 50), unit_sample(1, 30)), {}, True),
        (PERSONS | DISTINCTIVE, DISTINCTIVE, (unit_sample(0, 50), unit_sample(1, 30)), {}, True),
        ({}, {}, (unit_sample(0, 50), unit_sample(1, 30)), {}, False),
        ({}, {}, (None, None), {}, True),
    ],
    ids=[
        "other units",
        "units of one table are unknown",
        "a unit in common",
        "large samples without a common unit",
        "too few units sampled",
        "holdings are counted",
        "half of the counts are equal",
        "a large count is equal",
        "no cells, other units",
        "no cells, unknown units",
    ],
)
def test_approve_distinguishes_counts_of_other_units(areas, persons, counts, units, changed, refused):
    """Persons and households of one register have the same measure, source and codes."""
    table = {"kind": "frequency", **changed}
    specification = {"release": {"name": "register"}, "table": table}
    entries = []
    for release_id, amounts, sample in zip((ID, "f" * 32), (persons, counts), units, strict=True):
        write_counts(areas, release_id, "register", amounts)
        if sample is not None:
            fingerprint = SourceFingerprint(sum(amounts.values()), "key", sample, {})
            fingerprint.write(areas.record(release_id) / FILE)
        identity = {"content": "table", "specification": specification}
        entries.append(replace(entry(release_id), name="register", identity=identity))
    expect_refusal(areas, *entries, refused=refused)


@pytest.mark.parametrize(("counts", "refused"), [(HOUSEHOLDS, False), (HALF_EQUAL, True)])
def test_approve_compares_counts_of_other_sources_by_more_than_one_small_count(areas, counts, refused):
    entries = []
    for release_id, name, amounts in ((ID, "persons", PERSONS), ("f" * 32, "households", counts)):
        write_counts(areas, release_id, name, amounts)
        entries.append(replace(entry(release_id), name=name, identity={"content": "table"}))
    expect_refusal(areas, *entries, refused=refused)


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
