"""Tests that every storage satisfies the laws of `pipelines.publication.storage.storage`."""

from __future__ import annotations

import hashlib
import pickle
import random
import threading
from contextlib import suppress
from functools import partial

import obstore
import pytest
from microguard.pipelines.publication.storage import object_store
from microguard.pipelines.publication.storage.faults import (
    AreaTaken,
    ContentChanged,
    StoreFailed,
    VersionChanged,
)
from microguard.pipelines.publication.storage.lease import Lease
from microguard.pipelines.publication.storage.storage import PLACES, storage_at
from microguard.schemas.errors import SpecificationError
from obstore.store import LocalStore

from tests.contract.storage.disk import Disk, failing
from tests.pipelines.releases import Killed

FILES = {"microdata/part-00000.parquet": b"records", "tables/001.parquet": b"cells"}
MANY = {f"microdata/part-{number:05d}.parquet": b"records of %d" % number for number in range(12)}
#: Lease that another run waits for.
PATIENT = partial(Lease, beat=0.01, silence=10.0, look=0.01)


def checksums(files=FILES):
    return {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


@pytest.fixture
def storage(place):
    made = place.storage()
    made.make()
    return made


@pytest.fixture
def staged(folder):
    """Return a local folder with the files of a tree."""
    return written(folder / "staging")


def written(folder, files=FILES):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def dying(folder, at, act, fault="killed", at_once=1):
    """Perform an action with a fault at one of its operations; return whether the fault occurred."""
    disk = Disk(folder, at, fault, lambda: None, random.Random(at))
    with failing(disk, at_once), suppress(Killed, KeyboardInterrupt, OSError, StoreFailed, ContentChanged):
        act()
    return disk.count > at


def every_death(folder, act, fault="killed", step=1, at_once=1):
    """Perform an action that is killed at its first operation, then at later ones, until it succeeds."""
    at = 0
    while dying(folder, at, act, fault, at_once):
        yield at
        at += step
    assert at > 0


def test_storage_reads_lists_and_deletes_files_that_were_put(storage, staged):
    storage.put("a.json", b"1")
    storage.put("b/c.json", memoryview(b"2"))
    storage.put("b/.hidden/d.json", staged / "tables/001.parquet")
    assert storage.get("a.json").content == b"1"
    assert storage.get("b/.hidden/d.json").content == b"cells"
    assert storage.list_files() == ["a.json", "b/.hidden/d.json", "b/c.json"]
    assert storage.list_files("b") == ["b/.hidden/d.json", "b/c.json"]
    assert storage.prefixes() == ["b"]
    assert storage.checksum("b/c.json") == (hashlib.sha256(b"2").hexdigest(), 1)
    storage.download("b/c.json", staged / "fetched")
    assert (staged / "fetched").read_bytes() == b"2"
    storage.put("a.json", b"other")
    assert storage.get("a.json").content == b"other"
    for name in storage.list_files("b"):
        storage.delete(name)
        storage.delete(name)  # deleting a missing file is no error
        assert not storage.exists(name)
        assert name not in storage.list_files()
    assert storage.list_files() == ["a.json"]


def test_storage_at_a_missing_place_has_no_files(place, folder):
    storage = place.storage()
    assert (storage.get("a"), storage.exists("a"), storage.list_files(), storage.prefixes()) == (
        None,
        False,
        [],
        [],
    )
    storage.delete("a")
    for read in (storage.checksum, lambda name: storage.download(name, folder / "target")):
        with pytest.raises(FileNotFoundError):
            read("a")


def test_put_if_absent_keeps_the_first_of_two_contents(storage):
    assert storage.put_if_absent("a", b"1")
    assert not storage.put_if_absent("a", b"2")
    assert storage.put_if_absent("a", b"1")  # repeated, because the answer to the first put was lost
    assert storage.get("a").content == b"1"


def test_replace_refuses_a_version_that_is_not_current(storage):
    first = storage.replace("a", b"1", None)
    assert storage.get("a").version == first
    second = storage.replace("a", b"2", first)
    for version in (None, first):
        with pytest.raises(VersionChanged):
            storage.replace("a", b"3", version)
    # repeated, because the answer to the first replace was lost
    assert storage.replace("a", b"2", first) == second
    assert storage.get("a").content == b"2"
    storage.delete("a")
    with pytest.raises(VersionChanged):
        storage.replace("a", b"3", second)
    assert not storage.exists("a")


def together(act, threads=4):
    """Perform an action in concurrent threads, each with its own number."""
    start, results = threading.Barrier(threads), {}

    def one(number):
        start.wait()
        results[number] = act(number)

    running = [threading.Thread(target=one, args=[number]) for number in range(threads)]
    for each in running:
        each.start()
    for each in running:
        each.join()
    return results


def test_exactly_one_of_several_concurrent_puts_succeeds(place, storage, monkeypatch):
    one_at_a_time(monkeypatch)
    for round_ in range(5):
        wins = together(lambda n, name=f"a{round_}": place.storage().put_if_absent(name, b"%d" % n))
        (winner,) = [number for number, won in wins.items() if won]
        assert storage.get(f"a{round_}").content == b"%d" % winner


def test_concurrent_replaces_lose_no_update(place, storage, monkeypatch):
    one_at_a_time(monkeypatch)
    storage.put("writers", b"")

    def write(number):
        mine, done = place.storage(), 0
        while done < 5:
            before = mine.get("writers")
            with suppress(VersionChanged):
                mine.replace("writers", before.content + b"%d" % number, before.version)
                done += 1

    together(write)
    assert sorted(storage.get("writers").content) == sorted(b"0123" * 5)


def one_at_a_time(monkeypatch):
    """Make the bucket of a test process one request at a time, as a store does for one object."""
    mutex = threading.RLock()

    def ordered(function):
        def request(*arguments, **options):
            with mutex:
                return function(*arguments, **options)

        return request

    for name, function in vars(object_store.obstore).items():
        monkeypatch.setattr(object_store.obstore, name, ordered(function))


@pytest.mark.parametrize("fault", ["killed", "torn"])
def test_readers_never_read_or_list_a_partially_written_file(place, storage, folder, fault):
    storage.put("a", b"before" * 100)
    for _ in every_death(folder, lambda: place.storage().put("a", b"after" * 100), fault):
        assert storage.get("a").content in (b"before" * 100, b"after" * 100)
        assert storage.list_files() == ["a"]
        storage.put("a", b"before" * 100)
    for _ in every_death(folder, lambda: place.storage().put_if_absent("new", b"whole" * 100), fault):
        assert storage.list_files() in (["a"], ["a", "new"])
        assert not storage.exists("new") or storage.get("new").content == b"whole" * 100
        storage.delete("new")


def put_tree(place, staged, files=FILES):
    storage = place.storage()
    with storage.lock():
        storage.remove_tree("tree", "last")
        storage.put_tree("tree", staged, checksums(files), "last", b"manifest")


def is_whole(storage, files=FILES):
    return all(storage.checksum(f"tree/{file}")[0] == each for file, each in checksums(files).items())


def test_stored_tree_has_its_files_until_it_is_removed(place, storage, staged):
    put_tree(place, staged)
    assert storage.list_files("tree") == sorted(f"tree/{name}" for name in (*FILES, "last"))
    assert storage.prefixes() == ["tree"]
    with storage.local_tree("tree") as local:
        assert {name: (local / name).read_bytes() for name in FILES} == FILES
    storage.remove_tree("tree", "last")
    storage.remove_tree("tree", "last")
    assert (storage.list_files("tree"), storage.prefixes()) == ([], [])


def test_last_file_of_a_tree_is_visible_only_if_all_its_files_are_visible(place, storage, staged, folder):
    deaths = every_death(folder, lambda: put_tree(place, staged))
    for at in deaths:
        assert not storage.exists("tree/last") or is_whole(storage)
        if at % 2:  # in half of the cases the next run begins with the remaining files
            storage.remove_tree("tree", "last")
    assert is_whole(storage)


@pytest.mark.parametrize("fault", ["killed", "torn", "EIO", "interrupted"])
def test_tree_stored_in_parallel_appears_completely_or_not_at_all(place, storage, folder, fault):
    many = written(folder / "many", MANY)
    for _ in every_death(folder, lambda: put_tree(place, many, MANY), fault, step=7, at_once=4):
        assert not storage.exists("tree/last") or is_whole(storage, MANY)
    put_tree(place, many, MANY)
    assert is_whole(storage, MANY)
    assert storage.list_files("tree") == sorted(f"tree/{name}" for name in (*MANY, "last"))


def test_storage_detects_a_changed_file_when_files_are_stored_in_parallel(place, storage, folder):
    many = written(folder / "many", MANY)
    (many / "microdata/part-00007.parquet").write_bytes(b"records of 8")
    with pytest.raises(ContentChanged, match="part-00007"):
        put_tree(place, many, MANY)
    assert not storage.exists("tree/last")


def test_tree_is_hidden_before_its_first_file_is_removed(place, storage, staged, folder):
    put_tree(place, staged)
    for _ in every_death(folder, lambda: place.storage().remove_tree("tree", "last")):
        assert not storage.exists("tree/last") or is_whole(storage)
        put_tree(place, staged)
    assert storage.list_files() == [each for each in storage.list_files() if each == ".lease"]


@pytest.mark.parametrize("change", ["altered", "gone"])
def test_tree_with_a_changed_file_does_not_appear(place, storage, staged, change):
    if change == "gone":
        (staged / "tables/001.parquet").unlink()
    else:
        (staged / "tables/001.parquet").write_bytes(b"other")
    with pytest.raises(ContentChanged):
        put_tree(place, staged)
    assert not storage.exists("tree/last")


def test_lock_has_one_holder_at_a_time_and_is_released_when_the_holder_ends(place, storage, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(object_store, "Lease", PATIENT)
        holder, other = place.storage(), place.storage()
    with holder.lock():
        holder.require_lock()
        with pytest.raises(BlockingIOError), other.lock(wait=False):
            pass
    for each in (holder, other):
        with pytest.raises(AreaTaken):
            each.require_lock()
    with other.lock(wait=False):
        other.require_lock()


def test_lock_of_a_process_that_died_is_taken_over(place, storage):
    with place.dead_holder(), storage.lock():
        storage.require_lock()


def test_storage_can_be_used_in_another_process(storage):
    storage.put("a", b"1")
    object_store._of_process.cache_clear()
    assert pickle.loads(pickle.dumps(storage)).get("a").content == b"1"


@pytest.mark.parametrize("key", PLACES)
def test_error_of_a_storage_names_its_place(place, folder, key):
    storage = place.storage(key)
    storage.make()
    storage.put("a", b"1")
    calls = {
        "get": lambda: storage.get("a"),
        "put": lambda: storage.put("b", b"1"),
        "put_if_absent": lambda: storage.put_if_absent("c", b"1"),
        "checksum": lambda: storage.checksum("a"),
    }
    for name, call in calls.items():
        disk = Disk(folder, 0, "EIO", lambda: None, random.Random(0))
        with failing(disk), pytest.raises((OSError, StoreFailed)) as failed:
            call()
        assert isinstance(failed.value, OSError) or PLACES[key] in str(failed.value), name


@pytest.mark.parametrize("key", PLACES)
def test_unusable_place_is_refused_before_the_run(place, folder, key, monkeypatch):
    place.folder.write_text("a file")
    with monkeypatch.context() as patched:
        patched.setattr(object_store, "obstore", obstore)
        patched.setattr(object_store, "connected", lambda *_: LocalStore(folder))
        with pytest.raises(SpecificationError, match=rf"^\[publish\] {key}: expected .*, found "):
            place.storage(key).require_writable()


def test_check_of_a_usable_place_changes_nothing(place, storage):
    before = storage.list_files()
    storage.require_writable()
    assert storage.list_files() == before


def test_address_with_an_unknown_scheme_is_an_object_store(folder):
    assert storage_at("other://place").folder is None
    assert storage_at(folder).folder == folder
