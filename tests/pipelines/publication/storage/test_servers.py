"""Tests with servers of S3 (moto) and Azure (Azurite): the same releases as in a folder, over a network."""

from __future__ import annotations

import os
import threading

import pytest
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.key import KEY_VARIABLE
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.stored_evidence import VARIABLE
from microguard.pipelines.verify import verify
from microguard.pipelines.withdraw import withdraw
from microguard.schemas.errors import GateRefused, SpecificationError
from obstore.store import from_url

from tests.pipelines.microdata import persons, run, specification
from tests.pipelines.publication.storage.servers import CLOUDS
from tests.pipelines.publication.storage.stores import names
from tests.pipelines.releases import ID, entry, manifest, staged

SECOND = "f" * 32


@pytest.fixture(scope="module", params=CLOUDS)
def server(request):
    cloud = CLOUDS[request.param]
    with cloud.started() as address:
        yield cloud, address


@pytest.fixture
def bucket(server, monkeypatch, request):
    """Return the address of an empty bucket; the credentials are in the environment, as in production."""
    cloud, address = server
    for name in [each for each in os.environ if each.startswith(cloud.environment)]:
        monkeypatch.delenv(name)
    for name, value in cloud.settings(address).items():
        monkeypatch.setenv(name, value)
    return f"{cloud.make(address, f'lake-{abs(hash(request.node.name))}')}/persons"


def test_release_in_a_bucket_is_published_verified_and_withdrawn(bucket, tmp_path):
    areas = Areas.from_places(bucket, tmp_path / "evidence")
    areas.public.require_writable()
    publish.publish(staged(areas), manifest(), areas, entry())
    assert "fulfils what its manifest promises" in verify(bucket).text
    publish.publish(staged(areas, SECOND), manifest(SECOND), areas, entry(SECOND), accepted=True)
    assert areas.public.current() == SECOND
    with areas.public.lock():
        publish.withdraw_release(Ledger(areas).published()[-1], areas)
    assert (areas.public.current(), areas.public.releases()) == (ID, [ID])


def test_one_of_two_concurrent_publications_succeeds_and_the_other_is_refused(bucket, tmp_path):
    ends = {}

    def publishing(release_id):
        areas = Areas.from_places(bucket, tmp_path / release_id)
        ready = staged(areas, release_id)
        start.wait()
        try:
            ends[release_id] = publish.publish(ready, manifest(release_id), areas, entry(release_id))
        except GateRefused as refusal:
            ends[release_id] = refusal

    start = threading.Barrier(2)
    threads = [threading.Thread(target=publishing, args=[each]) for each in (ID, SECOND)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [each for each, end in ends.items() if isinstance(end, str)]
    (loser,) = [end for end in ends.values() if isinstance(end, GateRefused)]
    assert "differences of two releases" in str(loser)
    area = Areas.from_places(bucket, tmp_path / winner).public
    assert (area.current(), area.releases()) == (winner, [winner])


def test_require_writable_refuses_a_missing_bucket(bucket, tmp_path):
    with pytest.raises(SpecificationError, match="can be written"):
        Areas.from_places(
            bucket.replace("lake-", "nobody-made-it-"), tmp_path / "evidence"
        ).public.require_writable()


def test_run_with_evidence_in_a_bucket_publishes_the_same_files_as_in_a_folder(
    spark, server, bucket, tmp_path, monkeypatch
):
    """The releases are in folders by region, and also as CSV."""
    cloud, address = server
    # The tasks need these variables, because the workers of this session already run.
    for name, value in cloud.settings(address).items():
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "key"))
    monkeypatch.setenv(VARIABLE, str(tmp_path / "north"))
    regions = {"north": "a/b %", "south": "Köln", "west": "=+"}
    frame, files = persons(), {}
    agency = f"{bucket.rpartition('/')[0]}/agency"
    layout = {"partition_by": "region", "csv": True}
    for name, place, evidence in (
        ("folder", tmp_path / "folder" / "lake", "evidence"),
        ("bucket", bucket, agency),
    ):
        folder = tmp_path / name
        folder.mkdir()
        frame.assign(region=frame["region"].map(regions)).to_parquet(folder / "data", index=False)
        spec = specification(folder, publish={"path": str(place), "evidence": evidence, **layout})
        outcome, areas = run(spark, spec, ())
        assert outcome.content["release"] == f"{place}/{outcome.content['release_id']}"
        with areas.public.reading(areas.public.current()) as release:
            files[name] = {
                path.relative_to(release).as_posix(): path.read_bytes()
                for path in release.rglob("*")
                if path.suffix in (".parquet", ".csv")
            }
    assert files["folder"] == files["bucket"]
    assert {f"microdata/region={each}/part-00000.parquet" for each in ("a%2Fb%20%25", "Köln", "%3D%2B")} < {
        *files["bucket"]
    }
    verified = verify(bucket).text
    assert "fulfils what its manifest promises" in verified
    assert "partitions: in each of them" in verified
    monkeypatch.setenv(VARIABLE, str(tmp_path / "south"))  # simulates another machine
    again, _ = run(spark, spec, ())
    assert "already published its release" in again.text
    record = f"{agency}/{again.content['release_id']}"
    assert again.content["report"] == f"{record}/report.html"
    assert "is withdrawn" in withdraw(record).text
    assert set(names(from_url(bucket))) - {".lease", ".area.json"} == set()
    kept = names(from_url(agency))
    assert {f"{again.content['release_id']}/{each}" for each in ("report.html", "quality.json")} <= {*kept}
    assert not [name for name in kept if "CANARY" in name or "key" in name]
