"""Publish: the only order in which a release enters the public area, and the way back out of half of it.

Staging lies in the evidence area. The ledger learns what is intended, and so does the one that areas share.
The files are copied from there, their checksums are compared again, all of it is made durable, and the
release appears whole (`PublicArea.put`). The table format commits and is audited. Then the ledger says that
the release is published, and ``current.json`` moves last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from microguard.pipelines.engine.command_result import now
from microguard.pipelines.engine.files import FileDamaged
from microguard.pipelines.publication.area_identity import AreaNotThere, begin_area, require_area, settle_area
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.formats.table_format import TableFormat, table_format
from microguard.pipelines.publication.identity import SERIES
from microguard.pipelines.publication.ledger import Entry, Ledger, is_in, public_area_of
from microguard.pipelines.publication.retention import expired_releases
from microguard.pipelines.publication.source_fingerprints.conflicts import (
    ledger_of,
    refuse_conflicts,
    shared_entry,
)
from microguard.pipelines.publication.source_fingerprints.shared_ledger import lock_of
from microguard.pipelines.publication.source_fingerprints.source_fingerprint import SHARED
from microguard.pipelines.publication.stage import StagedFiles
from microguard.pipelines.publication.storage.faults import AreaTaken
from microguard.pipelines.publication.withdrawal import remove_release, withdraw_release
from microguard.schemas.errors import ProtectionFailed


def publish(
    staged: StagedFiles, manifest: Mapping[str, Any], areas: Areas, entry: Entry, *, accepted: bool = False
) -> str:
    """Move a verified release to the public area and make it current.

    What stands there, and what was published of the same records, is looked at once more, with the public
    area and the shared ledger locked: a run that keeps its evidence elsewhere may have published meanwhile.

    Parameters
    ----------
    staged : StagedFiles
        Verified and accepted by the gate.
    manifest : mapping
        Written as ``manifest.json``, with the checksums of all files. Its ``format`` names the table format.
    areas : Areas
        With the evidence area locked.
    entry : Entry
        Line for the ledger; its event and time are set here.
    accepted : bool
        Whether a steward accepted that another release of this name stands.

    Raises
    ------
    GateRefused
        Where another release stands, or one of the same records, that was not accepted.
    AreaNotThere
        Where the public area is not the one that the ledger knows.
    AreaTaken
        Where another run took the public area over; the release is withdrawn again.
    ProtectionFailed
        Where a copied file is not the file that was staged and verified, or the table of the format does
        not hold the records of the files.
    """
    ledger = Ledger(areas)
    begin_area(areas)
    shared = ledger_of(replace(entry, public=areas.public.name))
    with areas.public.lock(), lock_of(shared):
        entry = replace(entry, public=areas.public.name, area=require_area(areas))
        ledger.refuse_successive(entry.name, staged.release_id, accepted)
        if SERIES in entry.identity:
            ledger.refuse_unknown(staged.release_id)
        refuse_conflicts(entry, areas)
        ledger.append(replace(entry, event="intended", at=now()))
        try:
            if shared is not None:  # after the line, by which whoever comes after a kill knows the entry
                shared.put(shared_entry(entry, areas), areas.record(staged.release_id) / SHARED)
            areas.public.put(staged.release_id, staged.folder, staged.checksums, manifest)
            _commit(table_format(str(manifest.get("format", "parquet"))), manifest, areas.public.folder)
        except Exception:
            remove_release(entry, areas, "abandoned")
            raise
        require_area(areas)  # else the release went to another place
        ledger.append(replace(entry, event="published", at=now()))
        try:
            areas.public.set_current(staged.release_id)
        except AreaTaken:
            _require_area_still(areas, staged.release_id)
            withdraw_release(entry, areas)
            raise
        _require_area_still(areas, staged.release_id)
    return areas.public.place(staged.release_id)


def _require_area_still(areas: Areas, release_id: str) -> None:
    """Say that a release is published, but that its area vanished as its readers were led to it.

    Raises
    ------
    AreaNotThere
    """
    try:
        require_area(areas)
    except AreaNotThere as error:
        raise AreaNotThere(
            f"Release {release_id} is published to the ledger, and then its public area was not at its place "
            f"any more. Once it is there, whoever comes next leads readers to the release. {error}"
        ) from None


def finish_what_died(areas: Areas) -> set[str]:
    """Finish what killed runs left half done: a release that was not yet published goes, a withdrawal ends.

    What is in another public area than this one waits until that one is there.

    A release that was being published on a person's word waits for it again. One that was published becomes
    current, and what it has outlived (`pipelines.publication.retention`) goes. To be called with the evidence
    area locked.

    Returns
    -------
    set of str
        Ids of the releases that had not gone before.

    Raises
    ------
    AreaNotThere
        Where the public area is not the one that the ledger knows.
    FileDamaged
        Where nobody can say which release ``current.json`` named.
    """
    settle_area(areas)
    _mend_current(areas)
    going = set()
    for entry in Ledger(areas).unfinished():
        area = public_area_of(entry, areas)
        if not _is_there(area, areas):
            continue
        going.add(entry.release_id)
        with area.public.lock():
            if entry.event == "withdrawing":
                remove_release(entry, area, "withdrawn")
            elif entry.by:
                remove_release(replace(entry, by="", note=""), area, "waiting")
            else:
                remove_release(entry, area, "abandoned")
    standing = [(each.name, public_area_of(each, areas)) for each in Ledger(areas).published()]
    for name, area in dict.fromkeys(standing):
        if not _is_there(area, areas):
            continue
        _lead_readers(name, area)
        for entry in expired_releases(area, name):
            going.add(entry.release_id)
            with area.public.lock():
                withdraw_release(entry, area)
    return going


def _is_there(area: Areas, areas: Areas) -> bool:
    """Whether an area that shares the evidence area is at its place; of `areas` itself that is known."""
    try:
        if area != areas:
            settle_area(area)
            _mend_current(area)
    except (AreaNotThere, FileDamaged):
        return False
    return True


def _mend_current(areas: Areas) -> None:
    """Write a damaged current.json anew, where this ledger knows all releases of the area.

    Raises
    ------
    FileDamaged
        Where it does not.
    """
    try:
        areas.public.current()
    except FileDamaged:
        if not set(Ledger(areas).latest()).issuperset(areas.public.releases()):
            raise
        standing = [each.release_id for each in Ledger(areas).published() if is_in(each, areas.public)]
        with areas.public.lock():
            areas.public.set_current(next(filter(areas.public.exists, reversed(standing)), None))


def _lead_readers(name: str, areas: Areas) -> None:
    """Make the newest release of a name current, where readers have none of this ledger's newer ones.

    Where they have one that another ledger knows, nobody can say which of the two came last.
    """
    ids = [each.release_id for each in Ledger(areas).published(name)]
    newest = next((each for each in reversed(ids) if areas.public.exists(each)), None)
    served = areas.public.current()
    if newest not in (None, served) and served in (None, *ids):
        with areas.public.lock():
            areas.public.set_current(newest)


def published_already(areas: Areas, release_id: str) -> bool:
    """Whether a release stands whole.

    A release whose files are not those of its manifest is not: it is to be made again.

    Raises
    ------
    AreaNotThere
        Where it cannot be seen, because its area is not at its place.
    """
    if release_id not in {entry.release_id for entry in Ledger(areas).published()}:
        return False
    whole = areas.public.is_whole(release_id)
    if not whole:
        require_area(areas)
    return whole


def _commit(row: TableFormat, manifest: Mapping[str, Any], public: Path | None) -> None:
    if public is None:
        if row.name != "parquet":
            raise ProtectionFailed(
                f"A {row.name} table needs a public area that is a folder. Nothing was published; choose "
                'another [publish] path, or format = "parquet".'
            )
        return
    row.commit(public, str(manifest["release_id"]))
    faults = row.audit(public, dict(manifest))
    if faults:
        raise ProtectionFailed(
            f"The {row.name} table that was committed is not the release: {'; '.join(faults)}. The "
            "commit was taken back and nothing was published; look for another writer of the table, and "
            "call this again."
        )
