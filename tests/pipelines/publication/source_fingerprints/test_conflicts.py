"""Tests of conflicts: a second release of the same records is refused under any name, naming the first
release.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from microguard.pipelines.joint_audit import audit_source
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.ledger import Entry, Ledger
from microguard.pipelines.publication.source_fingerprints.conflicts import (
    conflicts,
    refuse_conflicts,
    shared_entry,
)
from microguard.pipelines.publication.source_fingerprints.shared_ledger import (
    SharedLedgerDamaged,
    shared_ledger,
)
from microguard.pipelines.publication.source_fingerprints.source_fingerprint import FILE, SHARED
from microguard.pipelines.series.source import releases_of
from microguard.schemas.errors import GateRefused, SpecificationError

from tests.pipelines.microdata import specification
from tests.pipelines.publication.source_fingerprints.fingerprints import fingerprint_of
from tests.pipelines.publication.source_fingerprints.test_source_fingerprint import persons

A, B, C = "a" * 32, "b" * 32, "c" * 32
AREA = "0" * 32
FRAME = persons(400, 1)
FINGERPRINT, OTHER = fingerprint_of(FRAME), fingerprint_of(persons(400, 2))
LESS = fingerprint_of(FRAME.iloc[1:])
KEYED, STRANGERS = (
    fingerprint_of(persons(400, seed).assign(person=range(first, first + 400)), "person")
    for seed, first in ((1, 0), (3, 0))
)
ABROAD = fingerprint_of(persons(400, 4).assign(person=range(9000, 9400)), "person")


def enter(ledger, entry, fingerprint):
    """Write an entry to a shared ledger, as a publication does."""
    with ledger.lock():
        ledger.put(entry, fingerprint)


class Agency:
    """Return an evidence area and its public areas."""

    def __init__(self, folder, ledger=""):
        self.folder, self.ledger = folder, ledger

    def areas(self, lake="lake"):
        return Areas.from_places(self.folder / lake, self.folder / "evidence")

    def entry(self, release_id, fingerprint, name="persons", lake="lake", source=None, **changes):
        """Return the entry of the current run, whose fingerprint is stored as a run stores it."""
        release = {"name": name} | ({"source": source} if source else {})
        identity = {"content": "records", "specification": {"release": release}}
        identity |= {key: changes.pop(key) for key in ("content", "series") if key in changes}
        areas = self.areas(lake)
        if fingerprint is not None:
            fingerprint.write(areas.record(release_id) / FILE)
            if self.ledger:
                fingerprint.write(areas.record(release_id) / SHARED)
        areas.evidence.mkdir(parents=True, exist_ok=True)
        entry = Entry(
            "intended", release_id, name, "2026", identity, public=str(areas.public.folder.resolve())
        )
        return replace(entry, ledger=self.ledger, **changes)

    def publish(self, *args, then=(), **keys):
        entry = self.entry(*args, **keys)
        for event in ("intended", "published", *then):
            Ledger(self.areas()).append(replace(entry, event=event, area=AREA))
        self.areas(keys.get("lake", "lake")).public.begin(AREA)  # the area exists and has no files
        if self.ledger:
            areas = self.areas(keys.get("lake", "lake"))
            enter(
                shared_ledger(self.ledger),
                shared_entry(entry, areas),
                areas.record(entry.release_id) / SHARED,
            )
        return entry

    def found(self, *args, **keys):
        lake = keys.get("lake", "lake")
        return [each.release_id for each in conflicts(self.entry(*args, **keys), self.areas(lake))]


@pytest.fixture
def agency(tmp_path):
    return Agency(tmp_path)


@pytest.mark.parametrize(
    "fingerprint", [FINGERPRINT, LESS, fingerprint_of(FRAME.sample(frac=0.7, random_state=1))]
)
def test_conflicts_finds_the_same_source_under_another_name(agency, fingerprint):
    agency.publish(A, FINGERPRINT)
    entry = agency.entry(B, fingerprint, name="people", lake="other")
    with pytest.raises(GateRefused, match=rf"{A} \('persons', .*lake/{A}\).*successive") as refused:
        refuse_conflicts(entry, agency.areas("other"))
    assert refused.value.exit_code == 4
    refuse_conflicts(replace(entry, successive="accept"), agency.areas("other"))


def test_conflicts_ignores_a_different_source(agency):
    agency.publish(A, FINGERPRINT)
    assert agency.found(B, OTHER, name="people", lake="other") == []


def test_withdrawn_release_conflicts_only_under_another_name_or_place(agency):
    agency.publish(A, FINGERPRINT, then=["withdrawing", "withdrawn"])
    assert agency.found(B, LESS, name="people", lake="other") == [A]
    assert agency.found(B, LESS, lake="other") == [A]
    assert agency.found(B, LESS) == []


def test_release_that_was_never_public_does_not_conflict(agency):
    entry = agency.entry(A, FINGERPRINT)
    for event in ("waiting", "rejected"):
        Ledger(agency.areas()).append(replace(entry, event=event))
    assert agency.found(B, FINGERPRINT, name="people", lake="other") == []


def test_records_conflict_with_a_table_and_tables_do_not_conflict_with_tables(agency):
    table = fingerprint_of(FRAME[["region", "sex", "income"]])
    agency.publish(A, table, name="turnover", content="table")
    assert agency.found(B, FINGERPRINT, name="people", lake="other") == [A]
    assert agency.found(C, table, name="turnover2", lake="third", content="table") == []


def test_releases_of_one_series_do_not_conflict_with_each_other_and_a_single_release_conflicts(agency):
    agency.publish(A, FINGERPRINT, series="register")
    assert agency.found(B, LESS, series="register") == []
    assert agency.found(B, LESS, name="people", lake="other") == [A]
    assert agency.found(B, LESS, name="people", lake="other", series="register") == [A]


def test_first_release_of_a_series_conflicts_with_a_single_release_of_its_name(agency):
    agency.publish(A, FINGERPRINT)
    assert agency.found(B, FINGERPRINT, series="register") == [A]


def test_source_of_the_same_name_that_cannot_be_compared_conflicts(agency):
    agency.publish(A, None, source="town")
    assert agency.found(B, OTHER, name="people", lake="other", source="town") == [A]
    assert agency.found(B, OTHER, name="people", lake="other", source="village") == []
    with pytest.raises(GateRefused, match="cannot be compared"):
        refuse_conflicts(agency.entry(B, OTHER, name="people", source="town"), agency.areas())


def test_lost_fingerprint_conflicts_if_the_columns_are_alike(agency):
    roles = {name: {"role": "quasi_identifier"} for name in ("region", "sex", "income")}
    lost = agency.entry(A, FINGERPRINT)
    (agency.areas().record(A) / FILE).write_bytes(b"")
    lost.identity["specification"]["variables"] = roles
    for event in ("intended", "published"):
        Ledger(agency.areas()).append(replace(lost, event=event))
    tonight = agency.entry(B, FINGERPRINT, name="people", lake="other")
    names = {"alike": ("region", "sex", "education"), "others": ("region", "size", "turnover")}
    found = {}
    for which, columns in names.items():
        tonight.identity["specification"]["variables"] = {name: {"role": "other"} for name in columns}
        found[which] = [each.release_id for each in conflicts(tonight, agency.areas("other"))]
    assert found == {"alike": [A], "others": []}


@pytest.mark.parametrize("known", [("region", "sex", "income"), None], ids=["columns", "an older entry"])
def test_fingerprint_that_the_shared_ledger_lost_conflicts(tmp_path, known):
    north, south = (Agency(tmp_path / name, str(tmp_path / "shared")) for name in ("north", "south"))
    entry = shared_entry(north.entry(A, FINGERPRINT), north.areas())
    enter(shared_ledger(north.ledger), replace(entry, columns=known), north.areas().record(A) / SHARED)
    (tmp_path / "shared" / f"{A}.sketch.parquet").unlink()
    tonight = south.entry(B, FINGERPRINT, name="people")
    roles = {name: {"role": "other"} for name in ("region", "sex", "education")}
    tonight.identity["specification"]["variables"] = roles
    assert [each.release_id for each in conflicts(tonight, south.areas())] == [A]
    with pytest.raises(GateRefused, match="cannot be compared"):
        refuse_conflicts(tonight, south.areas())


def test_fingerprint_with_another_key_conflicts_under_any_name(agency):
    """A run without MICROGUARD_KEY_FILE would create a separate key and detect no repeated source."""
    agency.publish(A, fingerprint_of(FRAME, key=b"o" * 32))
    with pytest.raises(GateRefused, match="another key"):
        refuse_conflicts(agency.entry(B, FINGERPRINT, name="people", lake="other"), agency.areas("other"))
    agency.publish(C, fingerprint_of(FRAME, key=b"o" * 32), name="turnover", lake="third", content="table")
    assert C in agency.found(B, FINGERPRINT, name="turnover2", lake="other", content="table")


def test_unit_keys_decide_whether_two_releases_of_a_declared_source_conflict(agency):
    agency.publish(A, KEYED, source="town")
    assert agency.found(B, STRANGERS, name="people", lake="other", source="town") == [A]
    assert agency.found(B, STRANGERS, name="people", lake="other") == []
    assert agency.found(B, ABROAD, name="people", lake="other", source="town") == []
    assert agency.found(B, OTHER, name="people", lake="other", source="town") == [A]


def test_conflicts_finds_the_same_records_under_another_declared_source(agency):
    agency.publish(A, FINGERPRINT, source="town")
    assert agency.found(B, FINGERPRINT, name="people", lake="other", source="village") == [A]


def test_joint_audit_lists_releases_of_the_same_records_under_another_source(agency):
    agency.publish(A, FINGERPRINT)
    agency.publish(B, OTHER, name="others", lake="other")
    agency.publish(C, LESS, name="people", lake="third", successive="accept")
    spec = specification(agency.folder)
    assert [entry.release_id for entry in releases_of(agency.areas(), spec)] == [A, C]
    with pytest.raises(GateRefused, match=rf"under another source, as {C} \('people'"):
        audit_source(spec)


@pytest.mark.parametrize(("public", "met"), [("s3://lake/persons", [A]), ("/lake/persons", [])])
def test_abandoned_release_of_a_series_counts_for_its_source(agency, public, met):
    """An abandoned release has no manifest, but its files are readable in the store until removal."""
    entry = replace(agency.entry(A, KEYED, series="register"), public=public)
    for event in ("intended", "abandoned"):
        Ledger(agency.areas()).append(replace(entry, event=event))
    found = releases_of(agency.areas(), specification(agency.folder))
    assert [entry.release_id for entry in found] == met


def test_joint_audit_lists_releases_of_other_areas_of_a_shared_ledger(tmp_path):
    north, south = (Agency(tmp_path / name, str(tmp_path / "shared")) for name in ("north", "south"))
    north.publish(A, FINGERPRINT)
    south.publish(B, LESS, name="people", successive="accept")
    publish = {"path": "lake", "evidence": "evidence", "ledger": "../shared"}
    with pytest.raises(GateRefused, match=rf"under another source, as {B} .*south/lake/{B}"):
        audit_source(specification(north.folder, publish=publish))


def test_conflicts_finds_releases_of_other_areas_of_a_shared_ledger(tmp_path):
    north, south = (Agency(tmp_path / name, str(tmp_path / "shared")) for name in ("north", "south"))
    north.publish(A, FINGERPRINT)
    assert south.found(B, LESS, name="people") == [A]
    assert south.found(B, LESS) == [A]
    assert south.found(B, OTHER, name="people") == []
    assert Agency(tmp_path / "south").found(B, LESS, name="people") == []
    table = fingerprint_of(FRAME[["region", "sex", "income"]])
    north.publish(C, table, name="turnover", content="table")
    assert C in south.found(B, table, name="turnover", content="table")


@pytest.mark.parametrize("series", [{}, {"series": "register"}], ids=["single", "register"])
def test_release_that_a_restored_area_forgot_conflicts_through_the_shared_ledger(tmp_path, series):
    agency = Agency(tmp_path / "north", str(tmp_path / "shared"))
    agency.publish(C, OTHER, name="others", lake="elsewhere")
    backup = agency.areas().ledger.read_bytes()
    agency.publish(A, FINGERPRINT, **series)
    assert agency.found(B, LESS, **series) == []
    agency.areas().ledger.write_bytes(backup)
    assert agency.found(B, LESS, **series) == [A]
    assert agency.found(A, FINGERPRINT, **series) == []


def test_shared_ledger_keeps_its_first_entry_and_key_and_refuses_a_damaged_entry(tmp_path):
    agency, ledger = Agency(tmp_path / "north"), shared_ledger(str(tmp_path / "shared"))
    entry = agency.entry(A, FINGERPRINT)
    first = shared_entry(entry, agency.areas())
    enter(ledger, first, agency.areas().record(A) / FILE)
    enter(ledger, replace(first, name="another"), agency.areas().record(A) / FILE)
    assert ledger.entries() == [first]
    assert ledger.key(None) == ledger.key(None)
    assert (tmp_path / "shared" / "key").stat().st_mode & 0o777 == 0o600
    assert {path.name for path in (tmp_path / "shared").iterdir()} == {
        f"{A}.json",
        f"{A}.sketch.parquet",
        "key",
    }
    (tmp_path / "shared" / f"{A}.json").write_text("{}")
    with pytest.raises(SharedLedgerDamaged, match="back-up"):
        ledger.entries()
    (tmp_path / "shared" / "key").chmod(0o644)
    with pytest.raises(SpecificationError, match="0600"):
        ledger.key(None)
