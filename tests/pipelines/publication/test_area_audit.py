"""Tests of the area audit: before publication and on request, all releases of a population are audited
together.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from microguard.pipelines.audit.joint import differences, unit_sets
from microguard.pipelines.audit.joint.attackers import ATTACKERS
from microguard.pipelines.audit.joint.exposure import AreaExposure
from microguard.pipelines.joint_audit import _statement, audit_source
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.area_audit import EXPOSURE
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.ledger import Entry, Ledger
from microguard.pipelines.publication.stage import StagedFiles
from microguard.pipelines.publication.withdrawal import withdraw_release
from microguard.schemas.errors import GateRefused

from tests.pipelines.audit.joint.planted import region_totals_of_records, two_values, whole_and_part
from tests.pipelines.microdata import specification

IDS = ("a" * 32, "b" * 32)


class Office:
    """Return an evidence area with one public area per release, for releases with planted leaks."""

    def __init__(self, folder):
        self.folder, self.specification = folder, specification(folder)
        self.evidence = Path(self.specification.evidence_area)

    def areas(self, release_id):
        """Return the areas of a release."""
        return Areas.from_places(self.folder / "lakes" / release_id[0], self.evidence)

    def publish(self, release_id, release, source="firms", **changes):
        """Publish a table or records with their evidence, as a run does after verification."""
        areas = self.areas(release_id)
        shutil.copytree(release.evidence, areas.record(release_id), dirs_exist_ok=True)
        content = {"release": {"source": source, "period": release.period}}
        if release.table is not None:
            content["table"] = {"method": release.table.method, "value": "turnover"}
        kind = "records" if release.table is None else "table"
        identity = {"content": kind, "specification": content}
        entry = Entry("intended", release_id, f"table {release_id[0]}", "2026-01-01", identity)
        folder = release.public
        file = {"file": "table/001.parquet", "columns": ["branch", "region", "value"]}
        shown = {**release.manifest, "release_id": release_id}
        if release.table is not None:
            shown |= {"content": kind, "total": "Total", "tables": [file]}
        staged = StagedFiles.from_folder(release_id, folder)
        publish.publish(staged, shown, areas, replace(entry, **changes), accepted=True)


@pytest.fixture
def office(tmp_path):
    return Office(tmp_path)


@pytest.mark.parametrize("withdrawn", [False, True])
def test_refusal_of_a_table_of_all_units_but_one_states_count_and_release_id(office, tmp_path, withdrawn):
    first, second = whole_and_part(tmp_path / "leak", 3, True)
    office.publish(IDS[0], first)
    if withdrawn:
        areas = office.areas(IDS[0])
        with areas.lock(), areas.public.lock():
            withdraw_release(Ledger(areas).published()[0], areas)
    with pytest.raises(
        GateRefused, match="1 of 1 secrets are known within 1 % to the attacker 'outsider'"
    ) as error:
        office.publish(IDS[1], second)
    assert IDS[0] in str(error.value)
    assert not office.areas(IDS[1]).public.exists(IDS[1])
    kept = json.loads((office.evidence / IDS[1] / EXPOSURE).read_text())
    assert kept["known"]["outsider"] == 1


def test_safe_pair_is_published_and_the_audit_reports_it_as_safe(office, tmp_path):
    for release_id, release in zip(IDS, whole_and_part(tmp_path / "safe", 3, False), strict=True):
        office.publish(release_id, release)
    outcome = audit_source(office.specification)
    assert outcome.content["area"]["releases"] == IDS
    assert outcome.content["area"]["faults"] == []
    assert outcome.content["area"]["verdict"] == "green"
    assert "The 2 release(s) of the evidence area determine no secret together" in outcome.text


@pytest.mark.parametrize("pairs", [0, 20_000])
def test_partly_examined_area_is_not_reported_as_safe(office, tmp_path, monkeypatch, pairs):
    monkeypatch.setattr(unit_sets, "MEMBERSHIPS", 0)
    monkeypatch.setattr(unit_sets, "SMALL_SET", 2)
    monkeypatch.setattr(differences, "MOST_PAIRS", pairs)
    for release_id, release in zip(IDS, whole_and_part(tmp_path / "safe", 3, False), strict=True):
        office.publish(release_id, release)
    assert json.loads((office.evidence / IDS[1] / EXPOSURE).read_text())["verdict"] == "amber"
    outcome = audit_source(office.specification)
    assert outcome.content["area"]["verdict"] == "amber"
    assert "Not all of the 2 release(s)" in outcome.text
    assert "evidence area determine no secret" not in outcome.text


def test_steward_may_accept_disclosures_that_the_verb_audit_still_refuses(office, tmp_path):
    for release_id, release in zip(IDS, two_values(tmp_path / "leak", 3, True), strict=True):
        office.publish(release_id, release, successive="accept")
    kept = json.loads((office.evidence / IDS[1] / EXPOSURE).read_text())
    assert kept["accepted"] == 'publish.successive = "accept"'
    assert (kept["verdict"], kept["releases"], kept["repeated_draws"]) == ("red", list(IDS), 1)
    with pytest.raises(GateRefused, match="sensitive cells have two different published values"):
        audit_source(office.specification)


@pytest.mark.parametrize(
    "periods", [("2025", "2026"), ("2026", "2026")], ids=["periods", "parts of the units"]
)
def test_tables_of_other_periods_or_units_of_one_source_have_separate_values_and_are_safe(
    periods, office, tmp_path
):
    pair = whole_and_part(tmp_path / "safe", 3, False)
    for release_id, release, period in zip(IDS, pair, periods, strict=True):
        office.publish(release_id, replace(release, period=period), source="persons")
    outcome = audit_source(office.specification)
    assert "The 2 release(s) of the source 'persons' expose no unit together" in outcome.text
    assert (outcome.content["cells"], outcome.content["area"]["verdict"]) == (0, "green")


def test_area_audit_reports_the_disclosure_of_a_source_and_of_its_area_together(office, tmp_path):
    for release_id, release in zip(IDS, whole_and_part(tmp_path / "leak", 3, True), strict=True):
        office.publish(release_id, release, source="persons", successive="accept")
    _, records = region_totals_of_records(tmp_path / "records", 3, False)
    office.publish("c" * 32, records, source="persons", successive="accept")
    both = (
        r"3 release\(s\) of the source 'persons' together expose units: 1 releases cannot be compared .*"
        "evidence area together disclose more .*1 of 1 secrets are known"
    )
    with pytest.raises(GateRefused, match=both):
        audit_source(office.specification)


@pytest.mark.parametrize("verdict", ["green", "amber"])
def test_area_audit_reports_disclosures_to_attackers_below_the_limits(verdict):
    counts = dict.fromkeys(ATTACKERS, 0)
    area = AreaExposure(IDS, known=counts | {"growth": 3}, of=counts | {"growth": 200}, shared_draws=2,
                        comparable_draws=40, sampled=int(verdict == "amber"))  # fmt: skip
    assert area.verdict == verdict
    text = _statement(area)
    assert "no secret" not in text
    assert "3 of 200 secrets are known within 1 % to the attacker 'growth' (limit 11)" in text
    assert "2 of 40 sensitive cells have the same factor as in the previous period (limit 11)" in text


def test_tables_of_two_sources_share_no_unknowns(office, tmp_path):
    for release_id, release in zip(IDS, whole_and_part(tmp_path / "leak", 3, True), strict=True):
        office.publish(release_id, release, source=f"source {release_id[0]}")
    assert audit_source(office.specification).content["area"]["components"] == 0


def test_table_is_refused_if_evidence_of_an_earlier_table_is_lost(office, tmp_path):
    first, second = whole_and_part(tmp_path / "safe", 3, False)
    office.publish(IDS[0], first)
    (office.evidence / IDS[0] / "cells.parquet").unlink()
    with pytest.raises(GateRefused, match=f"releases cannot be compared with \\({IDS[0]}\\)"):
        audit_source(office.specification)
    with pytest.raises(GateRefused, match=f"releases cannot be compared with \\({IDS[0]}\\)"):
        office.publish(IDS[1], second)
    office.publish(IDS[1], second, successive="accept")
