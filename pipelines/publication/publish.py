"""Publish a release in a fixed order, and finish or undo publications that were interrupted.

1. Write the line ``intended`` to the ledger, and an entry to the shared ledger.
2. Copy the staged files, compare their checksums again and make them durable; the release becomes visible as
   a whole (`PublicArea.put`).
3. Commit the release to the table of the format, in the folder or in a catalogue, and audit the table.
4. Write the line ``published`` to the ledger.
5. Make the release the current one (``current.json``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from microguard.pipelines.engine.command_result import now
from microguard.pipelines.engine.files import FileDamaged
from microguard.pipelines.publication.area_audit import refuse_joint_exposure
from microguard.pipelines.publication.area_identity import AreaNotThere, begin_area, require_area, settle_area
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.formats.table_format import (
    catalog_table,
    stored_delta_table,
    table_format,
)
from microguard.pipelines.publication.identity import SERIES
from microguard.pipelines.publication.ledger import Entry, Ledger, is_in, public_area_of
from microguard.pipelines.publication.public_area import PublicArea
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

    While it holds the locks of the public area and the shared ledger, it checks once more for releases of the
    same name or the same records: a run with another evidence area may have published meanwhile.

    Parameters
    ----------
    staged : StagedFiles
        Staged files that were verified and accepted by the gate.
    manifest : mapping
        Written as ``manifest.json``, with the checksums of all files. Its ``format`` names the table format.
    areas : Areas
        The areas; the evidence area must be locked.
    entry : Entry
        Line for the ledger; its event and time are set here.
    accepted : bool
        Whether a steward accepted another release of this name.

    Raises
    ------
    GateRefused
        If another release of the name, or of the same records, is published and was not accepted, or if all
        releases of the evidence area together disclose more than before (`area_audit`).
    AreaNotThere
        If the public area is not the one in the ledger.
    AreaTaken
        If another run took over the lock of the public area; the release is withdrawn again.
    ProtectionFailed
        If a copied file is not the file that was staged and verified, or the table of the format does not
        have the records of the files.
    """
    ledger = Ledger(areas)
    begin_area(areas)
    refuse_joint_exposure(entry, areas, staged.folder, manifest)
    shared = ledger_of(replace(entry, public=areas.public.name))
    with areas.public.lock(), lock_of(shared):
        entry = replace(entry, public=areas.public.name, area=require_area(areas))
        ledger.refuse_successive(entry.name, staged.release_id, accepted)
        if SERIES in entry.identity:
            ledger.refuse_unknown(staged.release_id)
        refuse_conflicts(entry, areas)
        ledger.append(replace(entry, event="intended", at=now()))
        try:
            if shared is not None:  # after the line, from which a run after a kill knows the entry
                shared.put(shared_entry(entry, areas), areas.record(staged.release_id) / SHARED)
            areas.public.put(staged.release_id, staged.folder, staged.checksums, manifest)
            areas.keep_manifest(staged.release_id)
            _commit(entry, manifest, areas.public)
        except Exception:
            remove_release(entry, areas, "abandoned")
            raise
        require_area(areas)  # if another area is mounted now, the release was written to a wrong place
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
    """Raise an error if the area of a published release disappeared while the release was made current.

    Raises
    ------
    AreaNotThere
    """
    try:
        require_area(areas)
    except AreaNotThere as error:
        raise AreaNotThere(
            f"Release {release_id} is published according to the ledger, but its public area disappeared "
            "before it became current. The next run makes it current once the area is available again. "
            f"{error}"
        ) from None


def finish_what_died(areas: Areas) -> set[str]:
    """Finish or undo the work of killed runs; the evidence area must be locked.

    A release that was intended but not published is removed; if a person had approved it, it is pending
    approval again. A withdrawal is completed. The newest published release becomes current, and releases that
    have expired (`pipelines.publication.retention`) are withdrawn. Releases of other public areas that share
    the evidence area are skipped while their area is missing.

    Returns
    -------
    set of str
        Ids of the releases that were removed.

    Raises
    ------
    AreaNotThere
        If the public area is not the one in the ledger.
    FileDamaged
        If ``current.json`` is damaged and the ledger does not know all releases of the area.
    """
    settle_area(areas)
    _mend_current(areas)
    removed = set()
    for entry in Ledger(areas).unfinished():
        area = public_area_of(entry, areas)
        if not _is_there(area, areas):
            continue
        removed.add(entry.release_id)
        with area.public.lock():
            if entry.event == "withdrawing":
                remove_release(entry, area, "withdrawn")
            elif entry.by:
                remove_release(replace(entry, by="", note=""), area, "waiting")
            else:
                remove_release(entry, area, "abandoned")
    published = [(each.name, public_area_of(each, areas)) for each in Ledger(areas).published()]
    for name, area in dict.fromkeys(published):
        if not _is_there(area, areas):
            continue
        _lead_readers(name, area)
        for entry in expired_releases(area, name):
            removed.add(entry.release_id)
            with area.public.lock():
                withdraw_release(entry, area)
    return removed


def _is_there(area: Areas, areas: Areas) -> bool:
    """Return whether another public area with the same evidence area is at its place; `areas` itself is."""
    try:
        if area != areas:
            settle_area(area)
            _mend_current(area)
    except (AreaNotThere, FileDamaged):
        return False
    return True


def _mend_current(areas: Areas) -> None:
    """Rewrite a damaged current.json if this ledger knows all releases of the area.

    Raises
    ------
    FileDamaged
        If the area has releases that the ledger does not know.
    """
    try:
        areas.public.current()
    except FileDamaged:
        if not set(Ledger(areas).latest()).issuperset(areas.public.releases()):
            raise
        ids = [each.release_id for each in Ledger(areas).published() if is_in(each, areas.public)]
        with areas.public.lock():
            areas.public.set_current(next(filter(areas.public.exists, reversed(ids)), None))


def _lead_readers(name: str, areas: Areas) -> None:
    """Make the newest release of a name current, unless the current one belongs to another ledger.

    Two ledgers do not show which of their releases was published last.
    """
    ids = [each.release_id for each in Ledger(areas).published(name)]
    newest = next((each for each in reversed(ids) if areas.public.exists(each)), None)
    current = areas.public.current()
    if newest not in (None, current) and current in (None, *ids):
        with areas.public.lock():
            areas.public.set_current(newest)


def published_already(areas: Areas, release_id: str) -> bool:
    """Return whether a release is published with exactly its manifest and files.

    Raises
    ------
    AreaNotThere
        If the release cannot be checked because its area is missing at its place.
    """
    if release_id not in {entry.release_id for entry in Ledger(areas).published()}:
        return False
    whole = areas.public.is_whole(release_id) and areas.has_its_manifest(release_id)
    if not whole:
        require_area(areas)
    return whole


def _commit(entry: Entry, manifest: Mapping[str, Any], public: PublicArea) -> None:
    row = table_format(str(manifest.get("format", "parquet")))
    if entry.catalog or (public.folder is None and row.name == "delta"):
        table = (
            catalog_table(entry.catalog, entry.table, public) if entry.catalog else stored_delta_table(public)
        )
        table.commit(entry.release_id)
        faults = table.faults(dict(manifest))
    elif public.folder is not None:
        row.commit(public.folder, entry.release_id)
        faults = row.audit(public.folder, dict(manifest))
    elif row.name == "parquet":
        return
    else:
        raise ProtectionFailed(
            f"[publish] format: a {row.name} table needs a public area that is a folder, found an object "
            "store and no [publish] catalog. Nothing was published. Choose another [publish] path, another "
            "format, or name a [publish] catalog."
        )
    if faults:
        raise ProtectionFailed(
            f"The {row.name} table: expected the records of the release after the commit, found "
            f"{'; '.join(faults)}. The commit was undone and nothing was published. Find the other writer "
            "of the table, and call this again."
        )
