"""Publish: the only order in which a release enters the public area, and the way back out of half of it.

Staging lies in the evidence area. The ledger learns what is intended; the files are copied from there
under a hidden name, their checksums are compared again, all of it is made durable, and the release appears
under its own name in one rename. The table format commits and is audited. Then the ledger says that the
release is published, and ``current.json`` moves last.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipelines.engine.files import checksum, copy_durably, sync_folder, write_atomically
from pipelines.engine.outcome import now
from pipelines.publication.areas import MANIFEST, Areas
from pipelines.publication.formats.table_format import TableFormat, table_format
from pipelines.publication.ledger import Entry, Ledger, public_area_of
from pipelines.publication.retention import outlived
from pipelines.publication.sources.collisions import ledger_of, refuse_collisions, shared_entry
from pipelines.publication.sources.shared_ledger import lock_of
from pipelines.publication.sources.source_sketch import SHARED
from pipelines.publication.stage import StagedFiles
from pipelines.publication.withdrawal import remove_release, take_out, withdraw_release
from schemas.errors import ProtectionFailed


def publish(
    staged: StagedFiles, manifest: Mapping[str, Any], areas: Areas, entry: Entry, *, accepted: bool = False
) -> Path:
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
    ProtectionFailed
        Where a copied file is not the file that was staged and verified, or the table of the format does
        not hold the records of the files.
    """
    ledger = Ledger(areas)
    entry = replace(entry, public=str(areas.public.resolve()))
    shared = ledger_of(entry)
    with areas.public_lock(), lock_of(shared):
        ledger.refuse_successive(entry.name, staged.release_id, accepted)
        refuse_collisions(entry, areas)
        if shared is not None:
            shared.put(shared_entry(entry, areas), areas.record(staged.release_id) / SHARED)
        ledger.append(replace(entry, event="intended", at=now()))
        try:
            folder = _appear(staged, manifest, areas)
            _commit(table_format(str(manifest.get("format", "parquet"))), manifest, areas)
        except Exception:
            take_out(entry, areas, "abandoned")
            raise
        ledger.append(replace(entry, event="published", at=now()))
        make_current(areas, staged.release_id)
    return folder


def finish_what_died(areas: Areas) -> None:
    """Finish what killed runs left half done: a release that was not yet published goes, a withdrawal ends.

    What a publication has outlived (`pipelines.publication.retention`) goes, too. To be called with the
    evidence area locked.
    """
    for entry in Ledger(areas).unfinished():
        area = public_area_of(entry, areas)
        with area.public_lock():
            take_out(entry, area, "withdrawn" if entry.event == "withdrawing" else "abandoned")
    standing = [(each.name, public_area_of(each, areas)) for each in Ledger(areas).standing()]
    for name, area in dict.fromkeys(standing):
        for entry in outlived(area, name):
            with area.public_lock():
                withdraw_release(entry, area)


def published_already(areas: Areas, release_id: str) -> bool:
    """Whether a release stands whole; finishes the last step of a run that died before it.

    A release whose files are not those of its manifest is not whole: it is to be made again.
    """
    standing = Ledger(areas).standing()
    names = {entry.release_id: entry.name for entry in standing}
    if release_id not in names or not is_whole(areas.release(release_id)):
        return False
    latest = [each for each, name in names.items() if name == names[release_id]][-1]
    if latest == release_id and areas.served() != release_id:
        make_current(areas, release_id)
    return True


def is_whole(folder: Path) -> bool:
    """Whether a release folder holds exactly the files of its manifest."""
    try:
        files = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        return all(checksum(folder / name) == named["sha256"] for name, named in files.items())
    except (OSError, ValueError, KeyError, TypeError):
        return False


def make_current(areas: Areas, release_id: str) -> None:
    """Point the readers to a release, in one step."""
    write_atomically(areas.current, json.dumps({"release_id": release_id}))


def _appear(staged: StagedFiles, manifest: Mapping[str, Any], areas: Areas) -> Path:
    """The release folder under its own name, whole and durable."""
    folder = areas.release(staged.release_id)
    incoming = areas.public / f".{staged.release_id}.incoming"
    for left in areas.public.glob(".*.incoming"):  # of runs that died while they copied
        shutil.rmtree(left)
    if folder.exists():
        if is_whole(folder) and _holds(folder, staged):
            return folder  # of a run whose ledger was lost: readers keep the very files they have
        remove_release(areas, staged.release_id)
    try:
        _copy(staged, incoming, manifest)
        incoming.rename(folder)
    finally:
        shutil.rmtree(incoming, ignore_errors=True)
    sync_folder(areas.public)
    return folder


def _holds(folder: Path, staged: StagedFiles) -> bool:
    """Whether a whole release folder is made of the staged files."""
    files = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
    return {name: each["sha256"] for name, each in files.items()} == dict(staged.checksums)


def _copy(staged: StagedFiles, incoming: Path, manifest: Mapping[str, Any]) -> None:
    """Copy what was staged, every file compared with its checksum, and add the manifest."""
    files = {}
    for name, expected in staged.checksums.items():
        source, target = staged.folder / name, incoming / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_file():
            copy_durably(source, target)
        if not target.is_file() or checksum(target) != expected:
            raise ProtectionFailed(
                "A file of the release changed after it was staged, or while it was copied to the public "
                "area. Nothing was published; look for a faulty disk or another writer, and call this again."
            )
        files[name] = {"sha256": expected, "bytes": target.stat().st_size}
    write_atomically(incoming / MANIFEST, json.dumps({**manifest, "files": files}, indent=2))
    for folder in [incoming, *(path for path in incoming.rglob("*") if path.is_dir())]:
        sync_folder(folder)


def _commit(row: TableFormat, manifest: Mapping[str, Any], areas: Areas) -> None:
    row.commit(areas, str(manifest["release_id"]))
    faults = row.audit(areas.public, dict(manifest))
    if faults:
        raise ProtectionFailed(
            f"The {row.name} table that was committed is not the release: {'; '.join(faults)}. The "
            "commit was taken back and nothing was published; look for another writer of the table, and "
            "call this again."
        )
