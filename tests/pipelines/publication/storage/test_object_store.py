"""Tests of file transfers to an object store: multipart limits and several files at a time."""

from __future__ import annotations

import math
import threading
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from microguard.pipelines.engine.files import AT_ONCE, checksum
from microguard.pipelines.publication.storage import object_store
from microguard.pipelines.publication.storage.object_store import MOST_PARTS, SENT, ObjectStorage

from tests.contract.storage.bucket import REQUESTS
from tests.contract.storage.places import buckets


@pytest.mark.parametrize("size", [0, 1, SENT, SENT * MOST_PARTS, SENT * MOST_PARTS + 1, 75 * 10**9])
def test_file_is_sent_in_at_most_as_many_parts_as_a_store_accepts(size, tmp_path, monkeypatch):
    sizes = []
    put = SimpleNamespace(put=lambda *_, chunk_size: sizes.append(chunk_size))
    monkeypatch.setattr(object_store, "obstore", put)
    with open(tmp_path / "file", "wb") as file:
        file.truncate(size)  # a sparse file needs no disk space
    ObjectStorage("memory:///").put("file", tmp_path / "file")
    (part,) = sizes
    assert part >= SENT
    assert math.ceil(size / part) <= MOST_PARTS


def test_files_of_a_folder_are_sent_concurrently_and_the_last_file_after_all_others(tmp_path):
    staged = tmp_path / "staged"
    staged.mkdir()
    names = [f"{number}.parquet" for number in range(3 * AT_ONCE)]
    for name in names:
        (staged / name).write_bytes(name.encode())
    checksums = {name: checksum(staged / name) for name in names}
    together, put_in_order = threading.Barrier(AT_ONCE, timeout=120), []

    def put(store, name, content, **options):
        if name.startswith("tree/") and name != "tree/last":
            together.wait()
        put_in_order.append(name)
        return REQUESTS["put"](store, name, content, **options)

    watched = patch.object(object_store, "obstore", SimpleNamespace(**REQUESTS | {"put": put}))
    with buckets(tmp_path), watched:
        storage = ObjectStorage("s3://lake")
        with storage.lock():
            storage.put_tree("tree", staged, checksums, "last", b"{}")
        assert storage.list_files("tree") == sorted(f"tree/{name}" for name in [*names, "last"])
    sent = [name for name in put_in_order if name.startswith("tree/")]
    assert sorted(sent[:-1]) == sorted(f"tree/{name}" for name in names)
    assert sent[-1] == "tree/last"
