"""Tests that a run refuses a second release of published records before it computes anything."""

from __future__ import annotations

import numpy as np
import pytest
from microguard.pipelines import verification
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.job import Job
from microguard.pipelines.method import table_method
from microguard.pipelines.publication import identity as identities
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.source_fingerprints.source_fingerprint import FILE
from microguard.pipelines.records.product import Records
from microguard.pipelines.release import run
from microguard.pipelines.withdraw import withdraw
from microguard.schemas.errors import GateRefused

from tests.pipelines.microdata import ROLES, persons, specification

pytestmark = pytest.mark.spark
KNOWN = {name: ROLES[name] for name in ("person", "region", "sex", "age", "income")}
COLUMNS = KNOWN | {name: {"role": "identifier"} for name in ("name", "diagnosis", "weight", "note")}
TABLE = {"tables": [["region", "sex"]], "value": "income", "source": "microdata"}


class Agency:
    """Run jobs on one evidence area."""

    def __init__(self, spark, folder):
        self.spark, self.folder = spark, folder
        persons().to_parquet(folder / "data", index=False)

    def run(self, product=Records, frame=None, **sections):
        if frame is not None:
            frame.to_parquet(self.folder / "data", index=False)
        sections["publish"] = {"ledger": "shared"} | sections.get("publish", {})
        spec = specification(self.folder, COLUMNS, **{"method": {"effort": "fast"}} | sections)
        areas = Areas.from_places(self.folder / spec.publish.path, self.folder / spec.publish.evidence)
        with areas.lock():
            return run(product(spec), Job(self.spark, spec, areas, Progress(quiet=True))).content

    def refused(self, *args, **sections):
        with pytest.raises(GateRefused, match="of the same records") as refused:
            self.run(*args, **sections)
        return str(refused.value)


@pytest.fixture(scope="module")
def agency(spark, tmp_path_factory):
    shared_agency = Agency(spark, tmp_path_factory.mktemp("agency"))
    shared_agency.first = shared_agency.run()["release_id"]
    return shared_agency


def named(name, **release):
    return {"release": {"name": name, **release}, "publish": {"path": f"lakes/{name}"}}


def test_release_writes_the_fingerprint_of_its_source_to_its_evidence(agency):
    assert (agency.folder / "evidence" / agency.first / FILE).is_file()


CASES = {
    "one record less": lambda frame: frame.iloc[1:],
    "a coarser region": lambda frame: frame.assign(region=np.where(frame["region"] == "west", "w", "ns")),
    "other columns": lambda frame: frame.assign(person=frame["person"] + 5000, sex="x"),
}


@pytest.mark.parametrize(
    "case", ["other columns", *(pytest.param(case, marks=pytest.mark.long) for case in list(CASES)[:2])]
)
def test_refusal_of_published_records_names_their_release(agency, case):
    message = agency.refused(frame=CASES[case](persons()), **named("people", k=2))
    assert agency.first in message
    assert str(agency.folder / "lake" / agency.first) in message


def test_table_of_published_records_is_refused(agency):
    def product(specification):
        return table_method(specification).product()

    message = agency.refused(product, frame=persons(), table=TABLE, **named("turnover"))
    assert agency.first in message


def test_published_records_are_refused_in_another_evidence_area_of_the_same_ledger(agency):
    elsewhere = {"publish": {"path": "lakes/south", "evidence": "south"}}
    assert agency.first in agency.refused(frame=persons(), **elsewhere)


def test_release_is_recognised_as_published_with_newer_software_and_another_limit(agency, monkeypatch):
    monkeypatch.setattr(verification, "microguard_version", lambda: "99.0")
    report = agency.run(frame=persons(), quality={"max_information_loss": 0.99})
    assert report["release_id"] == agency.first


def test_release_with_another_solver_is_refused_although_a_steward_accepts_other_releases(
    agency, monkeypatch
):
    monkeypatch.setattr(identities, "deciding_versions", lambda: {"highspy": "0.1"})
    accepting = {"publish": {"path": "lake", "evidence": "evidence", "successive": "accept"}}
    with pytest.raises(GateRefused, match=r"only the versions .* highspy 0\.1 now"):
        agency.run(frame=persons(), **accepting)


def test_withdrawn_release_is_recognised_under_another_name(agency):
    withdraw(str(agency.folder / "evidence" / agency.first))
    areas = Areas.from_places(agency.folder / "lake", agency.folder / "evidence")
    assert Ledger(areas).published() == []
    assert agency.first in agency.refused(frame=persons(), **named("people"))
