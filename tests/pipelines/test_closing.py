"""Tests of the closing lines of a run, computed from the evidence alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from microguard.jobs import command
from microguard.jobs.command import run_command
from microguard.pipelines.admission import accepted_limits
from microguard.pipelines.answers import closing, pending_answer, published_answer
from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.evidence.evidence import Counts, Description, Evidence, write_evidence
from microguard.pipelines.measures.classes import Homogeneity
from microguard.pipelines.measures.homogeneity import HomogeneityMeasure
from microguard.pipelines.measures.uniques import Uniques, UniquesMeasure
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.tables.cells.cells import Cells
from microguard.pipelines.tables.measures import METRICS, TABLE
from microguard.pipelines.tables.total_changes import change_sentence, change_summary
from microguard.schemas.requirements.tables import table_requirements
from microguard.schemas.specification.read import build_specification
from microguard.schemas.specification.table import Table

ID = "0123456789abcdef0123456789abcdef"
SPECIFICATION = {
    "quality": {"accept": {"max_unique_jointly": "board, A. Steward"}},
    "publish": {"accept_dependencies": ["a21"], "successive": "refuse"},
}
RECORDS = Evidence(
    Description(ID, "persons", "records", "1", "2026-11-28T10:00:00+00:00", "area", 3, 1, "f", SPECIFICATION,
                "promise", ()),
    Counts(20_000, {"number missing": 120, "category missing": 0}, 10, 19_870),
    (), {},
    {
        "uniques_published": Uniques(19_870, {"hours": 100}, 1000),
        "homogeneity": {"diagnosis": Homogeneity(19_870, 3974, 1, 1.0, 0.5)},
    },
)  # fmt: skip


def test_closing_names_records_worst_risk_loss_and_acceptances() -> None:
    found = closing(RECORDS, [UniquesMeasure(), HomogeneityMeasure()])
    assert found.records == (
        "20,000 records read, 19,870 records in the release (rejected, number missing: 120; suppressed: 10)"
    )
    worst, loss, accepted = found.lines
    assert worst == (
        "Worst risk: An attacker who identifies a person's class learns diagnosis with certainty in 20 % of "
        "the cases."
    )
    assert loss == "Loss: no measure of this release quantifies it."
    assert accepted == (
        "Accepted by name: max_unique_jointly (board, A. Steward); "
        "columns from which a protected one can be computed (a21)."
    )


def test_closing_of_a_table_names_cells_largest_change_and_grand_total() -> None:
    section = {"cells": 9, "sensitive": 1, "moved": 4, "largest_change": 12.5, "grand_total_change": -0.063}
    content = replace(RECORDS.release, content="table", specification={"table": {"quality": {"accept": {}}}})
    found = closing(replace(RECORDS, release=content, sections={"table": section}), [TABLE, METRICS])
    assert "19,870 cells in the release" in found.records
    assert found.lines[1] == (
        "Loss: 4 of 9 cells have another value, which differs by at most 12.5; the grand total moved by "
        "-6.3 %."
    )
    assert found.lines[2] == "Accepted by name: nothing."


def test_closing_names_limits_that_the_specification_relaxes() -> None:
    quality = {"accept": {"max_homogeneous": "board"}, "max_homogeneous": 1.0, "max_unique_jointly": 0.5}
    content = replace(RECORDS.release, specification={"quality": quality | {"max_unique_published": 0.001}})
    assert closing(replace(RECORDS, release=content), []).lines[2] == (
        "Accepted by name: max_homogeneous (1 instead of 0.05: board); "
        "max_unique_jointly (0.5 instead of 0.05, without a reason)."
    )
    of_table = {"table": {"quality": {"accept": {}, "max_posterior": 0.9, "min_interval": 0.5}}}
    content = replace(RECORDS.release, content="table", specification=of_table)
    assert closing(replace(RECORDS, release=content), []).lines[2] == (
        "Accepted by name: min_interval (0.5 instead of 1, without a reason); "
        "max_posterior (0.9 instead of 0.6, without a reason)."
    )


def test_ledger_contains_limits_that_the_specification_relaxes(tmp_path: Path) -> None:
    roles = {"sex": {"role": "quasi_identifier", "kind": "nominal"}}
    quality = {"accept": {"max_homogeneous": "board"}, "max_unique_jointly": 1.0}
    content = {
        "release": {"name": "persons", "k": 3},
        "input": {"path": "data"},
        "variables": roles,
        "quality": quality,
        "publish": {"path": "lake", "evidence": "evidence"},
    }
    assert accepted_limits(build_specification(content, tmp_path)) == {
        "max_unique_jointly": "1 instead of 0.05, without a reason",
        "max_homogeneous": "board",
    }


@pytest.mark.parametrize("pending", [False, True])
def test_command_answer_has_five_lines_and_one_line_with_quiet(pending: bool, tmp_path: Path) -> None:
    areas = Areas.from_places(tmp_path / "lake", tmp_path / "evidence")
    answer = pending_answer if pending else published_answer
    without = answer(areas, ID, "Done")
    assert without.text.splitlines()[0] == ("Done; the release is not public." if pending else "Done.")
    write_evidence(areas.record(ID), RECORDS)
    found = answer(areas, ID, "Done")
    assert [line.split(":")[0] for line in found.text.splitlines()] == [
        "Done; the release is not public" if pending else "Done",
        "Worst risk", "Loss", "Accepted by name", "Next",
    ]  # fmt: skip
    assert "\n" not in found.brief
    assert ("microguard approve" in found.brief) == pending
    assert found.content == without.content


def test_quiet_prints_one_line_and_with_json_only_the_object(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = CommandResult("a\nb", {"release_id": ID}, "Waiting for approval. Decide: ...")
    monkeypatch.setattr(command, "call", lambda *_: result)
    assert run_command(["protect", "release.toml", "--quiet"]) == 0
    assert capsys.readouterr().out == "Waiting for approval. Decide: ...\n"
    assert run_command(["protect", "release.toml", "--quiet", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("{")


def _cells(units: list[float]) -> Cells:
    codes = pd.DataFrame({"a21": ["A", "B", "Total"]})
    return Cells(codes, np.array(units), tabulation=None)  # type: ignore[arg-type]


def test_change_summary_counts_cells_and_compares_the_grand_total() -> None:
    table = Table.model_validate({"value": "turnover", "tables": [["a21"]], "decimals": 1})
    found = change_summary(_cells([401.0, 600.0, 1001.0]), table, np.array([371.0, 600.0, 971.0]))
    total = pytest.approx(-30 / 1001)
    assert found == {"moved": 2, "largest_change": 3.0, "grand_total_change": total}
    assert change_summary(_cells([0.0, 0.0, 0.0]), table, np.zeros(3))["grand_total_change"] == 0
    (sentence,) = change_sentence({"cells": 3, **found})
    assert sentence.startswith(
        "2 of 3 cells have another value, which differs by at most 3; the grand total moved by -3 %"
    )
    assert list(change_sentence({"cells": 3})) == []  # this is evidence of an earlier version


@pytest.mark.parametrize(
    ("decimals", "published", "unit", "remedy"),
    [
        (0, [3700.0, 6000.0, 9700.0], None, None),
        (0, [3730.0, 6000.0, 9730.0], 100.0, "Give the values in units of 100."),
        (2, [3750.0, 6050.0, 9800.0], 1.0, "Lower table.decimals."),
        (0, [3725.0, 6000.0, 9725.0], 100.0, "Give the values in units of 100."),
    ],
)
def test_change_sentence_warns_if_the_last_digits_reveal_adjusted_cells(
    decimals: int, published: list[float], unit: float | None, remedy: str | None
) -> None:
    table = Table.model_validate({"value": "turnover", "tables": [["a21"]], "decimals": decimals})
    quarters = change_summary(_cells([25.0, 50.0, 75.0]), table, np.array([26.0, 50.0, 76.0]))
    assert quarters["telling_unit"] == 25 * 10.0**-decimals
    found = change_summary(_cells([4100.0, 6000.0, 10100.0]), table, np.array(published))
    assert found.get("telling_unit") == unit
    warnings = list(change_sentence({"cells": 3, **found}))[1:]
    assert [each.partition("changed. ")[2] for each in warnings] == ([] if remedy is None else [remedy])


@pytest.mark.parametrize(
    ("quality", "limit"),
    [
        ({}, 0.01),
        ({"max_grand_total_change": 0.1}, 0.1),
        ({"accept": {"max_grand_total_change": "the board"}}, None),
    ],
)
def test_grand_total_of_an_adjusted_table_is_limited_by_default(quality: dict, limit: float | None) -> None:
    table = Table.model_validate({"value": "turnover", "tables": [["a21"]], "quality": quality})
    required = [each for each in table_requirements(table, True) if each.key.metric == "grand_total_change"]
    assert [each.at_most for each in required] == ([] if limit is None else [limit])
    assert all(not each.met(0.2) for each in required)


def test_rounding_bounds_the_change_of_the_grand_total_by_its_base() -> None:
    table = Table.model_validate({"kind": "frequency", "tables": [["a21"]], "method": "rounding", "base": 5})
    assert all(each.key.metric != "grand_total_change" for each in table_requirements(table, True))
