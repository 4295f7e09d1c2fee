"""Audit of a release's table in a catalogue: its tag must refer to exactly the published files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.parquet as pq
from microguard.pipelines.audit.iceberg import misstated
from pyiceberg.table import Table
from pyiceberg.table.refs import SnapshotRefType

TAG = SnapshotRefType.TAG
#: Pattern of a release's tag, which equals its id; other writers may set other tags.
RELEASE_ID = re.compile("[0-9a-f]{32}")


def faults(table: Table, manifest: dict[str, Any], releases: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the faults of a release's snapshot in the catalogue, one sentence each.

    Parameters
    ----------
    table : Table
        The table in its present state in the catalogue.
    manifest : dict
        Manifest of the release.
    releases : mapping of str to sequence of str
        Addresses of the record files of each published release, and of the earlier releases that it includes.
    """
    released = releases[str(manifest["release_id"])]
    tag = table.refs().get(str(manifest["release_id"]))
    if tag is None:
        return ["the table of the catalogue has no tag with the id of this release"]
    scan = table.scan(snapshot_id=tag.snapshot_id)
    if {field.name for field in scan.projection().fields} != {each["name"] for each in manifest["columns"]}:
        return ["the columns of the table in the catalogue differ from those of the release"]
    tasks = list(scan.plan_files())
    if sorted(task.file.file_path for task in tasks) != sorted(released) or any(
        task.delete_files for task in tasks
    ):
        return ["the files of the table in the catalogue differ from those of the release"]
    counted = 0
    for file in released:
        with table.io.new_input(file).open() as stream:
            counted += pq.read_metadata(stream).num_rows
    if sum(task.file.record_count for task in tasks) != counted:
        return ["the table of the catalogue counts other records than the release"]
    if any(misstated(table, tag.snapshot_id, task.file) for task in tasks):
        return ["a manifest of the table states numbers or ends that are not those of the footers"]
    current = table.current_snapshot()
    tagged = {
        name: ref.snapshot_id
        for name, ref in table.refs().items()
        if ref.snapshot_ref_type == TAG and RELEASE_ID.fullmatch(name)
    }
    if tagged.keys() - releases.keys():
        return ["the table of the catalogue has a tag of a release that is not published"]
    if current is None or current.snapshot_id not in tagged.values():
        return ["another writer changed the table of the catalogue after its newest release"]
    of_tags = {each: sorted(releases[name]) for name, each in tagged.items()}
    known = list(map(sorted, releases.values()))
    for snapshot in table.snapshots():
        allowed = [of_tags[snapshot.snapshot_id]] if snapshot.snapshot_id in of_tags else known
        files = _files(table, snapshot.snapshot_id)
        if files is not None and files not in allowed:
            return [
                "another writer committed other files to the table of the catalogue, which a snapshot has"
            ]
    return []


def _files(table: Table, snapshot_id: int) -> list[str] | None:
    """Return the files of a snapshot, also those with deleted records; None if its manifests are missing."""
    try:
        tasks = list(table.scan(snapshot_id=snapshot_id).plan_files())
    except FileNotFoundError:  # no reader can load it
        return None
    deletes = [file.file_path for task in tasks for file in task.delete_files]
    return sorted([*(task.file.file_path for task in tasks), *deletes])
