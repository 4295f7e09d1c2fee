"""The audit of a release fails for tampered files, broken guarantees and damaged manifests."""

import json

import pyarrow as pa
import pytest
from microguard.pipelines.audit.release import audit
from microguard.pipelines.publication import publish
from microguard.pipelines.verify import verify
from microguard.pipelines.withdraw import withdraw
from microguard.schemas.errors import GateRefused, SpecificationError

from tests.pipelines.releases import ID, RECORDS, entry, manifest, staged


@pytest.mark.parametrize(
    ("tamper", "check"),
    [
        (lambda folder: (folder / "microdata" / "part-00000.parquet").write_bytes(b"PAR1"), "checksums"),
        (lambda folder: (folder / "tables" / "001_sex.parquet").unlink(), "checksums"),
        (lambda folder: (folder / "extra.csv").write_text("x"), "checksums"),
    ],
)
def test_audit_fails_for_tampered_files(released, tamper, check):
    tamper(released.public.release(ID))
    report = audit(released.public.release(ID))
    assert not report.passed
    assert [finding.check for finding in report.findings if not finding.passed] == [check]


@pytest.mark.parametrize(
    ("records", "changes", "check"),
    [
        (RECORDS.slice(0, 5), {"records": 5}, "k-anonymity"),
        (RECORDS, {"records": 7}, "records"),
        (RECORDS.replace_schema_metadata({"pandas": "{}"}), {}, "metadata"),
        (RECORDS.rename_columns(["sex", "name"]), {}, "columns"),
        (
            RECORDS.set_column(0, "sex", pa.array(["f", "f", "f", "f", "f", "f"])),
            {"guarantee": {"k": 3, "groups": [{
                "name": "all", "variables": ["sex"], "with_region": [], "smallest_class": 6, "classes": 1}]}},
            "tables",
        ),
        (
            RECORDS.set_column(0, "sex", pa.DictionaryArray.from_arrays(
                pa.array([0, 0, 0, 1, 1, 1], pa.int8()), pa.array(["f", "m", "secret"]))),
            {"columns": [{"name": "sex", "type": "dictionary<values=string, indices=int8, ordered=0>"},
                         {"name": "hours", "type": "int8"}]},
            "dictionaries",
        ),
    ],
)  # fmt: skip
def test_audit_fails_for_a_release_without_its_guarantee(areas, records, changes, check):
    publish.publish(staged(areas, records=records), manifest(**changes), areas, entry())
    failed = [finding.check for finding in audit(areas.public.release(ID)).findings if not finding.passed]
    assert check in failed


def test_audit_reads_a_column_that_is_called_filename(areas):
    names = {"sex": "sex", "hours": "FileName"}
    columns = [{"name": "sex", "type": "string"}, {"name": "FileName", "type": "int8"}]
    records = RECORDS.rename_columns(names)
    publish.publish(staged(areas, records=records), manifest(columns=columns), areas, entry())
    assert audit(areas.public.release(ID)).passed


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"release_id": 1, "files": 2}'])
def test_verify_refuses_a_damaged_manifest(released, content):
    (released.public.release(ID) / "manifest.json").write_text(content)
    with pytest.raises(GateRefused, match="cannot be audited"):
        verify(str(released.public.folder))


def test_verify_refuses_a_withdrawn_release(released):
    record = released.record(ID)
    record.mkdir()
    (record / "quality.json").write_text(
        json.dumps({"release": {"public_area": str(released.public.folder)}})
    )
    withdraw(str(record))
    with pytest.raises(SpecificationError, match="not in the public area"):
        verify(str(record))
