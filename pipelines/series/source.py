"""A source: all releases of the same units, records and tables, standing and withdrawn, and their audit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

import pandas as pd
import pyarrow.parquet as pq

from pipelines.audit.joint.cells import is_table, read_table, seen_through
from pipelines.audit.joint.exposure import JointExposure, joint_exposure
from pipelines.audit.joint.members import Members, classes_of
from pipelines.audit.joint.published import PublishedRecords, is_records, read_records
from pipelines.publication.areas import Areas
from pipelines.publication.ledger import Entry, Ledger, public_area_of
from pipelines.publication.stage import Staged
from pipelines.series.membership import MEMBERS
from schemas.specification.model import Specification

#: Of a release of a series, in its evidence: the joint audit at its publication, and its night in counts.
JOINT = "joint.json"


def source_of(specification: Specification) -> str:
    """Name of the units behind a release."""
    return specification.release.source or specification.release.name


def releases_of(areas: Areas, specification: Specification) -> list[Entry]:
    """Every release of the source that readers may have seen, oldest first; withdrawn ones too."""
    source = source_of(specification)
    entries = [entry for entry in Ledger(areas).entries() if entry.event == "published"]
    first: dict[str, Entry] = {}
    for entry in entries:
        if _source_of(entry) == source:
            first.setdefault(entry.release_id, entry)
    return list(first.values())


def _source_of(entry: Entry) -> str:
    release = entry.identity.get("specification", {}).get("release", {})
    return str(release.get("source") or entry.name)


def joint_exposure_of(areas: Areas, entries: Sequence[Entry], staged: Staged | None = None) -> JointExposure:
    """Audit releases of one source together, and beside them one that is staged.

    A release whose map of members is lost, or does not describe its published files, is not compared.

    Parameters
    ----------
    areas : Areas
    entries : sequence of Entry
    staged : Staged, optional
        Its map lies in the evidence already.
    """
    maps: list[Members] = []
    tables, records, lost = [], [], []
    for entry in entries:
        folder = public_area_of(entry, areas).release(entry.release_id)
        stands = (folder / "manifest.json").is_file()
        if stands and is_table(folder):
            tables.append(read_table(folder))
            continue
        members = Members.read(areas.record(entry.release_id) / MEMBERS)
        published = read_records(folder) if stands and is_records(folder) else None
        if members is None or (published is not None and not members.describes(published)):
            lost.append(entry.release_id)
            continue
        maps.append(members)
        records += [] if published is None else [published]
    if staged is not None:
        members = Members.read(areas.record(staged.files.release_id) / MEMBERS)
        if members is None or not members.describes(_staged_records(staged)):
            lost.append(staged.files.release_id)
        else:
            maps.append(members)
    classes = classes_of(maps) if maps else []
    return joint_exposure(classes, cells=seen_through(tables, records), not_compared=lost)


def _staged_records(staged: Staged) -> PublishedRecords:
    files: list[Path] = staged.microdata
    frames = [pq.read_table(path).to_pandas() for path in files]
    return PublishedRecords(
        staged.files.release_id,
        MappingProxyType({}),
        pd.concat(frames, ignore_index=True),
        MappingProxyType({}),
    )
