"""Tests that the next run finishes a publication or withdrawal that stopped at any operation, in every
storage.
"""

from __future__ import annotations

import random
from contextlib import contextmanager, suppress
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from microguard.pipelines.publication import publish
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.key import KEY_VARIABLE
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.source_fingerprints.shared_ledger import shared_ledger
from microguard.pipelines.publication.storage.faults import AreaTaken, StoreFailed
from microguard.pipelines.publication.storage.mirror import MirroredFolder
from microguard.pipelines.publication.stored_evidence import VARIABLE
from microguard.schemas.errors import SpecificationError

from tests.contract.storage.disk import Disk, failing
from tests.contract.storage.places import KINDS, Place, buckets
from tests.pipelines.publication.source_fingerprints.test_conflicts import FINGERPRINT, LESS, A, Agency, B
from tests.pipelines.releases import ID, Killed, entry, manifest, staged

SECOND = "f" * 32
KINDS_OF_FAULT = ("killed", "answer lost")
#: Each fault with the distance between tested operations: every operation in the long lane.
FAULTS = [
    pytest.param(("killed", 2), id="killed"),
    pytest.param(("answer lost", 5), id="answer lost"),
    *[pytest.param((each, 1), id=f"{each}, everywhere", marks=pytest.mark.long) for each in KINDS_OF_FAULT],
]
ENDS = (Killed, StoreFailed, AreaTaken, SpecificationError, OSError)


@contextmanager
def stopped(folder, at, fault):
    """Kill the enclosed code at an operation; the disk counts the operations."""
    disk = Disk(folder, at, fault, lambda: None, random.Random(at))
    with suppress(*ENDS), failing(disk):
        yield disk


def stops(folder, fault, act, least):
    """Repeat an action with a fault at its first operation, then at later ones, until it succeeds."""
    (kind, step), at, met = fault, 0, True
    while met:
        with stopped(folder, at, kind) as disk:
            act()
        met = disk.count > at
        yield at
        at += step
    assert at > least


def published(areas, release_id=ID, **options):
    """Publish a staged release, as a run does."""
    publish.publish(staged(areas, release_id), manifest(release_id), areas, entry(release_id), **options)


def withdrawn(areas):
    """Withdraw the release that was published last."""
    with areas.public.lock():
        publish.withdraw_release(Ledger(areas).published()[-1], areas)


def forget_all_but_the_first_release(areas):
    """Truncate the ledger after the two lines of the first release, as if no later release were published."""
    areas.ledger.write_bytes(b"".join(areas.ledger.read_bytes().splitlines(keepends=True)[:2]))


@pytest.fixture
def evidence(folder):
    return folder / "evidence"


@pytest.mark.parametrize("fault", FAULTS)
def test_publication_that_stops_at_any_operation_leaves_one_whole_release_and_the_next_run_finishes_it(
    place, folder, evidence, fault
):
    published(Areas.from_places(place.address, evidence))
    ready = staged(Areas.from_places(place.address, evidence), SECOND)

    def run():
        areas = Areas.from_places(place.address, evidence)
        publish.publish(ready, manifest(SECOND), areas, entry(SECOND), accepted=True)

    for _ in stops(folder, fault, run, least=20):
        areas = Areas.from_places(place.address, evidence)
        assert areas.public.current() in (ID, SECOND)
        assert areas.public.is_whole(areas.public.current())
        publish.finish_what_died(areas)
        if not publish.published_already(areas, SECOND):
            publish.publish(ready, manifest(SECOND), areas, entry(SECOND), accepted=True)
        assert areas.public.current() == SECOND
        assert areas.public.is_whole(SECOND)
        withdrawn(areas)
        forget_all_but_the_first_release(areas)
    assert Areas.from_places(place.address, evidence).public.current() == ID


@pytest.mark.parametrize("fault", FAULTS)
def test_withdrawal_that_stops_at_any_operation_is_finished_by_the_next_run(place, folder, evidence, fault):
    published(Areas.from_places(place.address, evidence))
    published(Areas.from_places(place.address, evidence), SECOND, accepted=True)
    for _ in stops(folder, fault, lambda: withdrawn(Areas.from_places(place.address, evidence)), least=10):
        areas = Areas.from_places(place.address, evidence)
        publish.finish_what_died(areas)
        # the withdrawal stopped before its ledger entry
        if SECOND in [each.release_id for each in Ledger(areas).published()]:
            withdrawn(areas)
        assert (areas.public.current(), areas.public.releases()) == (ID, [ID])
        forget_all_but_the_first_release(areas)
        published(areas, SECOND, accepted=True)


#: Operations at which successive runs stop, and the fault.
STOPS = st.lists(st.tuples(st.integers(0, 60), st.sampled_from(KINDS_OF_FAULT)), min_size=2, max_size=3)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stops=STOPS)
def test_run_that_stops_while_it_finishes_another_run_leaves_one_whole_release(folder, kind, stops):
    root = folder / uuid4().hex
    root.mkdir()
    with buckets(root):
        place = Place(kind, root / "lake")
        published(Areas.from_places(place.address, root / "evidence"))
        for stop in [*stops, (None, "killed")]:
            areas = Areas.from_places(place.address, root / "evidence")
            with stopped(root, *stop):
                publish.finish_what_died(areas)
                if not publish.published_already(areas, SECOND):
                    published(areas, SECOND, accepted=True)
            areas = Areas.from_places(place.address, root / "evidence")
            assert areas.public.current() in (ID, SECOND)
            assert areas.public.is_whole(areas.public.current())
        assert areas.public.current() == SECOND


@pytest.mark.parametrize("fault", FAULTS)
def test_publication_that_stops_at_any_operation_is_visible_to_other_areas_if_readers_may_have_seen_it(
    place, folder, fault, monkeypatch
):
    monkeypatch.setenv(KEY_VARIABLE, str(folder / "key"))
    north, ledger = Agency(folder / "north", place.address), shared_ledger(place.address)
    release, ready = north.entry(A, FINGERPRINT), staged(north.areas(), A)

    def run():
        publish.publish(ready, manifest(A), north.areas(), release)

    for at in stops(folder, fault, run, least=20):
        entered = [each.release_id for each in ledger.entries()]
        assert entered == [A] or north.areas().public.releases() == []
        assert not entered or ledger.fingerprint(A) is not None
        publish.finish_what_died(north.areas())
        if at % 5 == 0:
            assert north.found(B, LESS) == []  # a run with another input continues in place of the killed run
            if not publish.published_already(north.areas(), A):
                run()
            assert [each.release_id for each in ledger.entries()] == [A]
        for each in north.areas().public.releases():
            with north.areas().public.lock():
                north.areas().public.remove(each)
        (north.areas().public.folder / "current.json").unlink(missing_ok=True)
        north.areas().ledger.unlink(missing_ok=True)
        for name in place.storage().list_files():
            place.storage().delete(name)


@pytest.mark.parametrize("fault", FAULTS)
def test_mirrored_folder_of_a_run_that_stops_at_any_operation_has_one_whole_state_and_the_next_run_continues(
    place, folder, fault
):
    def machine(name):
        (folder / name).mkdir(exist_ok=True)
        return MirroredFolder(
            place.storage("evidence"),
            folder / name,
            is_stored=lambda name: not name.startswith("."),
            is_shown=lambda name: name.endswith(".html"),
        )

    def write(mirror, **files):
        (mirror.folder / "a").mkdir(exist_ok=True)
        for name, text in files.items():
            (mirror.folder / "a" / name).write_text(text)

    def contents(mirror):
        files = (path for path in mirror.folder.rglob("[!.]*") if path.is_file())
        return {path.relative_to(mirror.folder).as_posix(): path.read_text() for path in files}

    def run():
        north = machine("north")
        with north.hold():
            write(north, ledger="12", fingerprint="s")
            north.keep()
            (north.folder / "a" / "fingerprint").unlink()
            write(north, ledger="123", page="p")

    states = [{"a/ledger": "1"}, {"a/ledger": "12", "a/fingerprint": "s"}, {"a/ledger": "123", "a/page": "p"}]
    with machine("north").hold():
        write(machine("north"), ledger="1")
    reader = machine("reader")
    for _ in stops(place.folder, fault, run, least=20):  # the operations of the run itself do not fail
        reader.fetch()
        assert contents(reader) in states
        following = machine("north")
        with following.hold():
            assert contents(following) == contents(reader)
            write(following, ledger="1")
            for name in ("fingerprint", "page"):
                (following.folder / "a" / name).unlink(missing_ok=True)
    assert contents(reader) == states[-1]


@pytest.mark.parametrize("fault", FAULTS)
def test_publication_with_stored_evidence_that_stops_at_any_operation_is_finished_by_the_next_machine(
    folder, fault, monkeypatch
):
    monkeypatch.setenv(KEY_VARIABLE, str(folder / "key"))

    def on_a_fresh_machine(run, machine):
        monkeypatch.setenv(VARIABLE, str(folder / f"{machine} {run}"))
        return Areas.from_places(f"s3://lake {run}", f"s3://agency {run}")

    def publish_with_evidence(areas):
        areas.record(ID).mkdir(parents=True, exist_ok=True)
        (areas.record(ID) / "quality.json").write_text("{}")
        published(areas)

    (kind, step), at, met = fault, 0, True
    while met:
        areas = on_a_fresh_machine(at, "first")
        with stopped(folder, at, kind) as disk, areas.lock():
            publish_with_evidence(areas)
        met = disk.count > at
        areas = on_a_fresh_machine(at, "second")
        known = Ledger(areas).ever_published("persons")
        assert not areas.public.releases() or known == [ID]
        assert not known or (areas.record(ID) / "quality.json").is_file()
        with areas.lock():
            publish.finish_what_died(areas)
            if not publish.published_already(areas, ID):
                publish_with_evidence(areas)
            assert areas.public.current() == ID
        at += 2 * step
    assert at > 60
