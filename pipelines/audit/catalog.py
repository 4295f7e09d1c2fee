"""Audit of a release's table in a catalogue: its tag must refer to exactly the published files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow.parquet as pq
from microguard.pipelines.audit.iceberg import misstated
from pyiceberg.table import Table
from pyiceberg.table.refs import SnapshotRefType

TAG = SnapshotRefType.TAG
#: Pattern of a release's tag, which equals its id; other writers may set other tags.
RELEASE_ID = re.compile("[0-9a-f]{32}")


def faults(table: Table, manifest: dict[str, Any], released: Sequence[str]) -> list[str]:
    """Return the faults of a release's snapshot in the catalogue, one sentence each.

    Parameters
    ----------
    table : Table
        The table in its present state in the catalogue.
    manifest : dict
        Manifest of the release.
    released : sequence of str
        Addresses of the record files of the release and of the earlier releases that it includes.
    """
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
        ref.snapshot_id
        for name, ref in table.refs().items()
        if ref.snapshot_ref_type == TAG and RELEASE_ID.fullmatch(name)
    }
    if current is None or current.snapshot_id not in tagged:
        return ["another writer changed the table of the catalogue after its newest release"]
    return []
