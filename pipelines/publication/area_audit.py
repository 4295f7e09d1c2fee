"""Audit of all releases of an evidence area together, before a release is published and on request.

The audit itself (`pipelines.audit.joint`) shares no code with the code that it audits. This module selects
the releases for the audit: all releases that readers may have seen, grouped by population. Releases belong to
one population if they have the same source, or if fingerprints show that their sources have the same records.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microguard.pipelines.engine.files import private_folder, read_json, write_atomically
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.identity import SERIES
from microguard.pipelines.publication.ledger import Entry, Ledger, public_area_of
from microguard.pipelines.publication.source_fingerprints.conflicts import (
    same_under_another_source,
    source_of,
)
from microguard.schemas.errors import GateRefused

if TYPE_CHECKING:
    from microguard.pipelines.audit.joint.exposure import AreaExposure
    from microguard.pipelines.audit.joint.releases import Release, TableLayout

#: Folder of the evidence area with the results of earlier audits (hidden, so that it is not copied to object
#: stores), and file of the audit in the evidence of a release.
KEPT, EXPOSURE = ".joint", "joint_area.json"
#: Text in the file `EXPOSURE` if a steward accepted the disclosure that the audit counted.
ACCEPTED = 'publish.successive = "accept"'
#: Assumed largest noise of a cell, if neither manifest nor specification states it.
_NOISE = 5
_REMEDY = "Restore the evidence area from its back-up."


def area_exposure(areas: Areas) -> AreaExposure:
    """Audit every release of the evidence area that readers may have seen.

    Raises
    ------
    AreaNotThere, FileDamaged
        If the public area of a release is missing at its place.
    """
    entries = _ever_public(areas)
    return _exposure(areas, entries, _populations(areas, entries), None)


def refuse_joint_exposure(entry: Entry, areas: Areas, staged: Path, manifest: Mapping[str, Any]) -> None:
    """Refuse a release if it and earlier releases of its population together disclose more than the earlier
    ones alone.

    The result of the audit is written to the evidence of the release. If a steward accepted the disclosure,
    the file states this, and the release is not refused.

    Parameters
    ----------
    entry : Entry
        The release, whose evidence is complete.
    areas : Areas
        The areas; the evidence area must be locked.
    staged : Path
        Folder with the verified files of the release.
    manifest : mapping

    Raises
    ------
    GateRefused
    """
    earlier = [each for each in _ever_public(areas) if each.release_id != entry.release_id]
    populations = _populations(areas, [*earlier, entry])
    mine = populations[entry.release_id]
    related = [each for each in earlier if populations[each.release_id] == mine]
    if not related or not any(map(_is_audited, (*related, entry))):
        return
    place = private_folder(areas.record(entry.release_id)) / EXPOSURE
    accepted = entry.successive == "accept"
    exposure = _exposure(areas, [*related, entry], populations, (staged, manifest))
    content = exposure.content() | ({"accepted": ACCEPTED} if accepted else {})
    write_atomically(place, json.dumps(content, indent=2, sort_keys=True))
    if accepted or exposure.safe:
        return
    added = exposure.beyond(_exposure(areas, related, populations, None))
    if not added.safe:
        names = ", ".join(each.release_id for each in related)
        raise GateRefused(
            f"The joint audit of {len(related) + 1} releases of the source {source_of(entry)!r}: expected "
            "that together they disclose no more than each of them alone, found: "
            f"{'; '.join(added.faults())}. Nothing was published. The earlier releases are {names}. Publish "
            "the same values as in the earlier releases, or coarser ones, or set publish.successive to "
            '"accept" if a steward has decided that all of them may be known together.'
        )


def _ever_public(areas: Areas) -> list[Entry]:
    """Return the first ledger line of each release that has ever been public."""
    first: dict[str, Entry] = {}
    for entry in Ledger(areas).entries():
        if entry.event == "published" or (entry.event == "abandoned" and "://" in entry.public):
            first.setdefault(entry.release_id, entry)
    return list(first.values())


def _is_audited(entry: Entry) -> bool:
    """Return whether the audit can read a release's evidence: it is a table, or records of a series."""
    return entry.identity.get("content") == "table" or SERIES in entry.identity


def _populations(areas: Areas, entries: Sequence[Entry]) -> dict[str, str]:
    """Return the population of each release: the first name in alphabetical order among sources with the same
    records.
    """
    newest = {source_of(entry): entry for entry in entries}
    leader = {source: source for source in newest}

    def find(source: str) -> str:
        while leader[source] != source:
            source = leader[source]
        return source

    sources = {entry.release_id: source_of(entry) for entry in entries}
    for source, entry in newest.items() if len(newest) > 1 else ():
        for conflict in same_under_another_source(entry, areas):
            other = sources.get(conflict.release_id)
            if other is not None:
                first, second = sorted((find(source), find(other)))
                leader[second] = first
    return {release_id: find(source) for release_id, source in sources.items()}


def _exposure(
    areas: Areas,
    entries: Iterable[Entry],
    populations: Mapping[str, str],
    staged: tuple[Path, Mapping[str, Any]] | None,
) -> AreaExposure:
    from microguard.pipelines.audit.joint.exposure import audit

    listed = list(entries)
    with ExitStack() as held:
        releases = []
        for position, entry in enumerate(listed):
            last = staged is not None and position == len(listed) - 1
            files = staged if last else _public_files(entry, areas, held)
            releases.append(_release(entry, areas, populations[entry.release_id], files))
        return audit(releases, areas.evidence / KEPT, areas.key())


def _public_files(entry: Entry, areas: Areas, held: ExitStack) -> tuple[Path, Mapping[str, Any]] | None:
    """Return the public folder and the manifest of a release; None if it was withdrawn."""
    if not _is_audited(entry) and entry.identity.get("content", "records") != "records":
        return None
    public = public_area_of(entry, areas).public
    if not public.exists(entry.release_id):
        return None
    folder = held.enter_context(public.reading(entry.release_id))
    return folder, read_json(
        folder / "manifest.json", f"manifest.json of release {entry.release_id}", _REMEDY
    )


def _release(
    entry: Entry, areas: Areas, population: str, files: tuple[Path, Mapping[str, Any]] | None
) -> Release:
    from microguard.pipelines.audit.joint.releases import Release

    specification = entry.identity.get("specification", {})
    folder, manifest = files if files is not None else (None, None)
    table = _layout(specification, manifest) if entry.identity.get("content") == "table" else None
    period = str(specification.get("release", {}).get("period") or "")
    return Release(
        entry.release_id,
        population,
        period,
        areas.record(entry.release_id),
        folder,
        manifest,
        table,
        SERIES in entry.identity,
    )


def _layout(specification: Mapping[str, Any], manifest: Mapping[str, Any] | None) -> TableLayout:
    """Return the layout of a table's cells, from the specification in the ledger and the manifest."""
    from microguard.pipelines.audit.joint.releases import COUNT, TableLayout

    table: Mapping[str, Any] = specification.get("table", {})
    stated: Mapping[str, Any] = (manifest or {}).get("method", {})
    weighted = " (weighted)" if table.get("weighted") else ""
    counts = table.get("kind") == "frequency"
    value = COUNT if counts and table.get("source") != "cells" else table.get("value") or COUNT
    measure = COUNT + ("" if value == COUNT else f" {value}") if counts else str(value)
    return TableLayout(
        measure=measure + weighted,
        method=str(table.get("method", "adjustment")),
        total=str(table.get("total", "Total")),
        hierarchies=tuple(tuple(each) for each in table.get("hierarchies", ())),
        parents=table.get("parents", {}),
        least=int(table.get("minimum_frequency") or specification.get("release", {}).get("k", 3)),
        base=table.get("base", stated.get("base")),
        noise=int(stated.get("largest", table.get("largest_noise") or _NOISE)),
        capacity=float(table.get("capacity", 100)) / 100,
    )
