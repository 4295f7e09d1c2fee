"""Tests that the audit of a release fails for tampered files, broken guarantees and damaged manifests."""

import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.audit.release import audit
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.stage import StagedFiles
from microguard.pipelines.verify import verify
from microguard.pipelines.withdraw import withdraw
from microguard.schemas.errors import GateRefused, SpecificationError

from tests.pipelines.releases import CELLS, ID, RECORDS, entry, manifest, staged


@pytest.mark.parametrize(
    ("tamper", "check"),
    [
        (lambda folder: (folder / "microdata" / "part-00000.parquet").write_bytes(b"PAR1"), "checksums"),
        (lambda folder: (folder / "tables" / "001_sex.parquet").unlink(), "checksums"),
        (lambda folder: (folder / "extra.csv").write_text("x"), "checksums"),
        (lambda folder: (folder / "microdata" / "more").symlink_to("/tmp"), "checksums"),
        (lambda folder: (folder / "microdata" / "gone.parquet").symlink_to("nowhere"), "checksums"),
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
        (
            RECORDS.cast(
                pa.schema([pa.field("sex", pa.string(), metadata={"source": "a"}), RECORDS.schema.field(1)])
            ),
            {},
            "metadata",
        ),
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


def failed_checks(areas, records=RECORDS, further=(), **changes):
    """Publish records with copies of them in further listed files; return the checks that fail."""
    files = staged(areas, records=records)
    for name in further:
        (files.folder / name).parent.mkdir(exist_ok=True)
        pq.write_table(records, files.folder / name)
    files = StagedFiles.from_folder(ID, files.folder)
    publish.publish(files, manifest(**changes), areas, entry())
    return [finding.check for finding in audit(areas.public.release(ID)).findings if not finding.passed]


@pytest.mark.parametrize(
    "name", ["raw/part-00000.parquet", "microdata/part-00001.pq", "secret.csv", "tables/002_hours.parquet"]
)
def test_audit_fails_for_a_listed_file_that_no_check_reads(areas, name):
    assert failed_checks(areas, further=[name]) == ["files"]


def test_audit_fails_for_a_table_that_the_manifest_describes_and_does_not_list(areas):
    tables = [{"file": f"tables/{name}.parquet", "variables": ["sex"]} for name in ("001_sex", "../../other")]
    assert "files" in failed_checks(areas, tables=tables)


@pytest.mark.parametrize("names", [["income above 90,000", "frequency"], ["sex", "n"]])
def test_audit_fails_for_a_table_with_other_names_than_those_of_its_variables(areas, names):
    files = staged(areas)
    pq.write_table(CELLS.rename_columns(names), files.folder / "tables" / "001_sex.parquet")
    publish.publish(StagedFiles.from_folder(ID, files.folder), manifest(), areas, entry())
    failed = [finding.check for finding in audit(areas.public.release(ID)).findings if not finding.passed]
    assert failed == ["columns"]


def test_a_release_that_is_put_again_has_the_manifest_that_was_counted(areas, released):
    path = released.public.release(ID) / "manifest.json"
    kept = path.read_bytes()
    path.write_text(json.dumps(json.loads(kept) | {"guarantee": {"k": 9, "groups": []}}))
    publish.publish(staged(areas), manifest(), areas, entry())
    assert path.read_bytes() == kept


def test_verify_refuses_a_manifest_that_differs_from_the_published_one_until_the_next_run(areas, released):
    path = released.public.release(ID) / "manifest.json"
    kept = path.read_bytes()
    assert "manifest: as it was published" in verify(str(path.parent)).text
    path.write_text(json.dumps(json.loads(kept) | {"limits": []}))
    with pytest.raises(GateRefused, match="not the one with which the release was published"):
        verify(str(path.parent))
    assert not publish.published_already(areas, ID)
    publish.publish(staged(areas), manifest(), areas, entry())
    assert publish.published_already(areas, ID)
    assert path.read_bytes() == kept


GROUP = {"name": "all", "variables": ["sex"], "with_region": []}
COLUMNS = [
    {"name": "sex", "type": "string", "role": "quasi_identifier", "protected": True},
    {"name": "hours", "type": "int8", "role": "other", "protected": False},
]


@pytest.mark.parametrize(
    ("guarantee", "columns"),
    [
        ({"k": 3, "groups": []}, COLUMNS),
        ({"k": 3, "groups": [GROUP | {"variables": []}]}, COLUMNS),
        ({"k": 1, "groups": [GROUP]}, COLUMNS),
        ({"k": 3, "groups": [GROUP], "unit": "tribe"}, COLUMNS),
        ({"k": 3, "groups": [GROUP], "missing": "sometimes"}, COLUMNS),
        ({"k": 3, "groups": [GROUP]}, [COLUMNS[0], COLUMNS[1] | {"protected": True}]),
        ({"k": 3, "groups": [GROUP]}, [COLUMNS[0], COLUMNS[1] | {"role": "region"}]),
    ],
)
def test_audit_fails_for_a_k_anonymity_that_omits_a_protected_variable_of_the_manifest(
    areas, guarantee, columns
):
    assert failed_checks(areas, guarantee=guarantee, columns=columns) == ["guarantee"]
    areas.public.remove(ID)
    assert failed_checks(areas, guarantee={"k": 3, "groups": [GROUP]}, columns=COLUMNS) == []


@pytest.mark.parametrize(
    ("values", "recode", "wrong"),
    [
        ([1.5, 2.0, 9.0, None, float("nan"), 3.0], {"top_code": 9.0, "bottom_code": 1.5}, False),
        ([1.5, 2.0, 9.5, None, 1.5, 3.0], {"top_code": 9.0}, True),
        ([1.5, 2.0, 9.5, None, 1.5, 3.0], {"bottom_code": 2}, True),
        ([0.3, 0.6, 17.0, None, 0.9, 0.3], {"round_to": 0.3, "top_code": 17}, False),
        ([0.3, 0.65, 17.0, None, 0.9, 0.3], {"round_to": 0.3, "top_code": 17}, True),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], {"missing": [97, 99]}, False),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 97.0], {"missing": [97, 99]}, True),
        (["1", "2", "97", "9", "9.0", "x"], {"missing": [99, "refused"]}, False),
        (["1", "2", "97", "9", "9.0", "refused"], {"missing": [9, "refused"]}, True),
        ([True, False, None, True, True, True], {"missing": [0]}, False),
        ([Decimal("100.00"), *[Decimal("0.30")] * 5], {"top_code": 99.995, "round_to": 0.15}, False),
        ([Decimal("100.01"), *[Decimal("0.30")] * 5], {"top_code": 99.995}, True),
        (["under 18", "18 to under 65.5", "65.5 and over", None, None, None], {"bands": [18, 65.5]}, False),
        (["under 18", "18 to under 65.5", "70", None, None, None], {"bands": [18, 65.5]}, True),
    ],
)
def test_audit_fails_for_values_that_the_stated_recodes_cannot_produce(areas, values, recode, wrong):
    records = pa.table({"sex": RECORDS["sex"], "hours": values})
    columns = [COLUMNS[0], {"name": "hours", "type": str(records["hours"].type), "role": "other"}]
    recodes = [{"variable": "hours", **recode}]
    assert failed_checks(areas, records, columns=columns, recodes=recodes) == ["recodes"] * wrong


def test_audit_does_not_count_nan_as_a_value_of_a_sensitive_variable(areas):
    illness = {"name": "illness", "type": "double", "role": "sensitive"}
    nan = float("nan")
    for values, failed in (([1.0, nan, 1.0, 2.0, 1.0, nan], ["l-diversity"]), ([1.0, nan, 2.0] * 2, [])):
        records = pa.table({"sex": RECORDS["sex"], "illness": values})
        changes = {"columns": [COLUMNS[0], illness], "method": {"min_diversity": 2}}
        changes["guarantee"] = {"k": 3, "groups": [GROUP]}
        assert failed_checks(areas, records, **changes) == failed
        areas.public.remove(ID)


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
    record.mkdir(exist_ok=True)
    (record / "quality.json").write_text(
        json.dumps({"release": {"public_area": str(released.public.folder)}})
    )
    withdraw(str(record))
    with pytest.raises(SpecificationError, match="not in the public area"):
        verify(str(record))
