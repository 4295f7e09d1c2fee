"""The tables of a lake's formats: committed once, audited, and without a withdrawn release."""

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.audit.release import audit
from pipelines.publication import publish
from pipelines.publication.formats import delta
from pipelines.publication.ledger import Ledger
from pipelines.withdraw import withdraw
from schemas.errors import ProtectionFailed
from tests.pipelines.releases import ID, RECORDS, entry, manifest, staged


def test_a_delta_table_that_another_writer_changed_is_no_release(areas):
    from deltalake import write_deltalake

    publish.publish(staged(areas), manifest(format="delta"), areas, entry())
    assert audit(areas.release(ID)).passed
    changed = RECORDS.slice(0, 5)
    shutil.rmtree(areas.public / "delta")
    write_deltalake(str(areas.public / "delta"), changed, commit_properties=delta.properties(ID))
    failures = audit(areas.release(ID)).failures()
    assert failures == ["Delta table: the records of the Delta table are not those of the files"]


def test_a_commit_that_does_not_hold_the_records_is_taken_back(areas, monkeypatch):
    monkeypatch.setattr(delta, "write_deltalake", lambda *_, **__: None)
    with pytest.raises(ProtectionFailed, match="taken back"):
        publish.publish(staged(areas), manifest(format="delta"), areas, entry())
    assert list(areas.public.iterdir()) == []
    assert Ledger(areas).standing() == []


def test_a_delta_table_carries_the_release_and_forgets_a_withdrawn_one(areas):
    from pipelines.publication.formats.delta import committed

    second = "f" * 32
    publish.publish(staged(areas), manifest(format="delta"), areas, entry())
    fewer = staged(areas, second, RECORDS.slice(0, 3))
    publish.publish(fewer, manifest(second, format="delta", records=3), areas, entry(second), accepted=True)
    assert committed(areas) == [ID, second]
    withdraw(str(areas.release(ID)))
    assert committed(areas) == [second]
    files = list((areas.public / "delta").rglob("*.parquet"))
    assert sum(pq.read_metadata(path).num_rows for path in files) == 3
    withdraw(str(areas.release(second)))
    assert not (areas.public / "delta").exists()


def test_what_a_delta_table_cannot_hold_is_known_before():
    from pipelines.publication.formats.delta import not_carried

    held = {
        "a b": pa.int64(), "c": pa.dictionary(pa.int8(), pa.string()), "t": pa.timestamp("us"),
        "m": pa.decimal128(9, 2), "b": pa.bool_(), "d": pa.date32(), "f": pa.float32(),
    }  # fmt: skip
    foreign = {
        "u": pa.uint8(), "n": pa.timestamp("ns"), "h": pa.float16(), "w": pa.time64("us"),
        "Sex": pa.string(), "sex": pa.string(), "e": pa.duration("s"), "x": pa.decimal32(5, 2),
    }  # fmt: skip
    assert not_carried(pa.schema(list((held | foreign).items()))) == list(foreign)
