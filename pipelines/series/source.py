"""A source: all releases of the same units, records and tables, standing and withdrawn, and their audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pandas as pd
import pyarrow.parquet as pq

from pipelines.audit.joint.cells import PublishedTable, is_table, read_table, seen_through
from pipelines.audit.joint.exposure import JointExposure, joint_exposure
from pipelines.audit.joint.members import Members, classes_of
from pipelines.audit.joint.published import PublishedRecords, is_records, read_records
from pipelines.publication.areas import Areas
from pipelines.publication.ledger import Entry, Ledger, public_area_of
from pipelines.publication.public.public_area import PublicArea
from pipelines.publication.sources.collisions import Collision, same_under_another_source
from pipelines.publication.sources.collisions import source_of as source_of_entry
from pipelines.publication.stage import Staged
from pipelines.series.membership import MEMBERS
from schemas.specification.model import Specification

#: Of a release of a series, in its evidence: the joint audit at its publication, and its night in counts.
JOINT = "joint.json"


def source_of(specification: Specification) -> str:
    """Name of the units behind a release."""
    return specification.release.source or specification.release.name


def releases_of(areas: Areas, specification: Specification) -> list[Entry]:
    """Every release of the source that readers may have seen, oldest first; withdrawn ones too.

    A release of the same records belongs to the source, whatever source its specification names.
    """
    source = source_of(specification)
    first: dict[str, Entry] = {}
    for entry in Ledger(areas).entries():
        if entry.event == "published":
            first.setdefault(entry.release_id, entry)
    of_source = {release_id for release_id, entry in first.items() if source_of_entry(entry) == source}
    alike = {each.release_id for each in same_records_elsewhere(areas, specification)}
    return [entry for release_id, entry in first.items() if release_id in of_source | alike]


def same_records_elsewhere(areas: Areas, specification: Specification) -> list[Collision]:
    """Releases of the source's records under another source, in areas that share a ledger too."""
    source = source_of(specification)
    published = [entry for entry in Ledger(areas).entries() if entry.event == "published"]
    newest = {entry.name: entry for entry in published if source_of_entry(entry) == source}
    by_id = {
        each.release_id: each
        for entry in newest.values()
        for each in same_under_another_source(replace(entry, ledger=specification.shared_ledger or ""), areas)
    }
    return [by_id[release_id] for release_id in sorted(by_id)]


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
        published = _published(public_area_of(entry, areas).public, entry.release_id)
        if isinstance(published, PublishedTable):
            tables.append(published)
            continue
        members = Members.read(areas.record(entry.release_id) / MEMBERS)
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


def _published(public: PublicArea, release_id: str) -> PublishedTable | PublishedRecords | None:
    """What readers have of a release; nothing where it was withdrawn."""
    if not public.stands(release_id):
        return None
    with public.reading(release_id) as folder:
        if is_table(folder):
            return read_table(folder)
        return read_records(folder) if is_records(folder) else None


def _staged_records(staged: Staged) -> PublishedRecords:
    files: list[Path] = staged.microdata
    frames = [pq.read_table(path).to_pandas(strings_to_categorical=True) for path in files]
    return PublishedRecords(
        staged.files.release_id,
        MappingProxyType({}),
        pd.concat(frames, ignore_index=True),
        MappingProxyType({}),
    )
