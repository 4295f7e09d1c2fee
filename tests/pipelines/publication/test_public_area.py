"""Tests of a public area in an object store: complete releases after kills and races, one of them current."""

from __future__ import annotations

import obstore
import pyarrow.parquet as pq
import pytest
from microguard.pipelines.engine.files import FileDamaged
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.area_identity import AreaNotThere
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.public_area import PublicArea
from microguard.pipelines.publication.storage import lease, object_store
from microguard.pipelines.publication.storage.faults import AreaTaken
from microguard.pipelines.publication.storage.lease import Lease
from microguard.pipelines.publication.storage.storage import storage_at
from microguard.pipelines.verify import verify
from microguard.pipelines.withdraw import withdraw
from microguard.schemas.errors import GateRefused, ProtectionFailed, SpecificationError
from obstore.store import LocalStore

from tests.pipelines.publication.storage.stores import names
from tests.pipelines.releases import CELLS, ID, entry, manifest, staged

ADDRESS = "s3://lake/persons"
SECOND = "f" * 32


@pytest.fixture
def areas(store, tmp_path):
    return Areas.from_places(ADDRESS, tmp_path / "evidence")


def again(areas):
    """Return the same areas from the view of another process."""
    return Areas.from_places(ADDRESS, areas.evidence)


def published(areas, release_id=ID, **more):
    publish.publish(staged(areas, release_id), manifest(release_id), areas, entry(release_id), **more)


def test_release_in_an_object_store_is_found_by_its_address_until_it_is_withdrawn(areas):
    areas.public.require_writable()
    published(areas)
    assert (areas.public.current(), areas.public.releases()) == (ID, [ID])
    assert areas.public.is_whole(ID)
    for named in (ADDRESS, f"{ADDRESS}/{ID}/"):
        assert "fulfils what its manifest promises" in verify(named).text
    with pytest.raises(SpecificationError, match="expected its evidence area near the public area"):
        withdraw(ADDRESS)
    with areas.public.lock():
        publish.withdraw_release(Ledger(areas).published()[0], areas)
    assert (areas.public.current(), areas.public.releases()) == (None, [])
    with pytest.raises(SpecificationError, match="is no release"):
        verify(ADDRESS)


def test_set_current_refuses_a_run_whose_lease_was_taken_over(areas, store, tmp_path):
    other = Areas.from_places(ADDRESS, tmp_path / "elsewhere")
    published(areas)
    with areas.public.lock():  # The lease shows no activity for longer than any run waits.
        with pytest.raises(GateRefused, match="differences of two releases"):
            published(other, SECOND)
        published(other, SECOND, accepted=True)
        with pytest.raises(AreaTaken):
            areas.public.set_current(ID)
    assert again(areas).public.current() == SECOND


def test_publish_withdraws_its_release_if_the_area_was_taken_over_before_set_current(
    areas, tmp_path, monkeypatch
):
    other = Areas.from_places(ADDRESS, tmp_path / "elsewhere")
    set_current = PublicArea.set_current

    def late(area, release_id):
        monkeypatch.setattr(PublicArea, "set_current", set_current)
        published(other, SECOND, accepted=True)
        set_current(area, release_id)

    monkeypatch.setattr(PublicArea, "set_current", late)
    with pytest.raises(AreaTaken):
        published(areas)
    assert (areas.public.current(), areas.public.releases()) == (SECOND, [SECOND])
    assert Ledger(areas).published() == []
    assert Ledger(areas).ever_published("persons") == [ID]


def test_lease_is_not_taken_over_while_its_holder_renews_it(store):
    storage = storage_at(ADDRESS)
    holder = Lease(storage, beat=0.01, silence=0.1, look=0.01)
    waiting = Lease(storage, beat=0.01, silence=0.1, look=0.01)
    with holder.hold():
        waiting._silence = 0.0  # control: a run that does not wait gets the lock
        waiting._take()
        with pytest.raises(AreaTaken):
            holder.require()
        waiting._give_back()
    with holder.hold():
        waiting._silence, seen = 0.1, []
        for _ in range(30):  # The other run takes over after a third of this time without renewal.
            seen.append(obstore.get(store, lease.LEASE).meta["e_tag"])
            lease.time.sleep(0.01)
        assert len(set(seen)) > 3
        holder.require()


def test_publish_stores_no_file_that_changed_after_staging(areas):
    ready = staged(areas)
    pq.write_table(CELLS.slice(0, 1), ready.folder / "tables/001_sex.parquet")
    with pytest.raises(ProtectionFailed, match="changed after it was staged"):
        publish.publish(ready, manifest(), areas, entry())
    assert areas.public.releases() == []
    assert areas.public.storage.list_files(ID) == []


def test_publish_refuses_an_iceberg_table_without_catalog_in_an_object_store(areas):
    with pytest.raises(ProtectionFailed, match="expected a public area that is a folder"):
        publish.publish(staged(areas), manifest(format="iceberg"), areas, entry())
    assert (areas.public.current(), areas.public.releases()) == (None, [])


def test_is_whole_is_false_for_a_release_with_a_changed_object(areas, store):
    published(areas)
    obstore.put(store, f"{ID}/tables/001_sex.parquet", b"other")
    assert not areas.public.is_whole(ID)
    assert not publish.published_already(areas, ID)
    with pytest.raises(GateRefused):
        verify(ADDRESS)


def test_require_writable_refuses_a_store_without_conditional_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(object_store, "connected", lambda *_: LocalStore(tmp_path))
    with pytest.raises(SpecificationError, match="whatever its version"):
        Areas.from_places(ADDRESS, tmp_path / "evidence").public.require_writable()


def test_emptied_object_store_is_refused_as_another_area(areas, store):
    published(areas)
    for name in names(store):
        obstore.delete(store, name)
    for call in (lambda: published(again(areas), SECOND), lambda: publish.finish_what_died(again(areas))):
        with pytest.raises(AreaNotThere, match="--lost"):
            call()
    assert names(store) == []
    assert Ledger(areas).status(ID).event == "published"


def test_torn_current_json_in_an_object_store_is_rewritten_by_the_next_run(areas, store):
    published(areas)
    obstore.put(store, "current.json", b'{"rele')
    with pytest.raises(FileDamaged, match=r"current\.json of the public area"):
        verify(ADDRESS)
    publish.finish_what_died(again(areas))
    assert again(areas).public.current() == ID
