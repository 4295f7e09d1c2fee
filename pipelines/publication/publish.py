"""Stage, and release: the only code that writes to the public area.

Staging lies in the evidence area. A release is copied from there under a hidden name, its checksums
are compared again, and it appears under its own name in one rename; ``current.json`` moves last.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.engine.files import checksum, sync_folder, write_atomically
from pipelines.publication.areas import Areas
from pipelines.publication.ledger import Entry, Ledger
from pipelines.publication.stage import Staged
from schemas.errors import ProtectionFailed


def release(
    staged: Staged,
    manifest: Mapping[str, Any],
    areas: Areas,
    entry: Entry,
    *,
    format: str = "parquet",
    accepted: bool = False,
) -> Path:
    """Move a verified release to the public area and make it current.

    What stands there is looked at once more, with the public area locked: a run that keeps its evidence
    elsewhere may have published meanwhile.

    Parameters
    ----------
    staged : Staged
        Verified and accepted by the gate.
    manifest : mapping
        Written as ``manifest.json``, with the checksums of all files.
    areas : Areas
    entry : Entry
        Line for the ledger.
    format : {"parquet", "delta"}
        With delta, a table at ``<path>/delta`` gets a commit that carries the release id first.
    accepted : bool
        Whether a steward accepted that another release of this name stands.

    Raises
    ------
    GateRefused
        Where another release stands that was not accepted.
    ProtectionFailed
        Where a copied file is not the file that was staged and verified.
    """
    with areas.public_lock():
        Ledger(areas).refuse_successive(entry.name, staged.release_id, accepted)
        return _move(staged, manifest, areas, entry, format)


def _move(staged: Staged, manifest: Mapping[str, Any], areas: Areas, entry: Entry, format: str) -> Path:
    public = areas.release(staged.release_id)
    incoming = areas.public / f".{staged.release_id}.incoming"
    for left in areas.public.glob(".*.incoming"):  # of runs that died while they copied
        shutil.rmtree(left)
    if public.exists():  # a run died between this rename and its ledger line
        shutil.rmtree(public)
    try:
        _copy(staged, incoming, manifest)
    except BaseException:
        shutil.rmtree(incoming, ignore_errors=True)
        raise
    incoming.rename(public)
    sync_folder(areas.public)
    Ledger(areas).append(entry)
    _make_current(areas, staged.release_id, format)
    return public


def _copy(staged: Staged, incoming: Path, manifest: Mapping[str, Any]) -> None:
    """Copy what was staged, every file compared with its checksum, and add the manifest."""
    files = {}
    for name, expected in staged.checksums.items():
        source, target = staged.folder / name, incoming / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_file():
            shutil.copyfile(source, target)
        if not target.is_file() or checksum(target) != expected:
            raise ProtectionFailed(
                "A file of the release changed after it was staged, or while it was copied to the public "
                "area. Nothing was published; look for a faulty disk or another writer, and call this again."
            )
        files[name] = {"sha256": expected, "bytes": target.stat().st_size}
    write_atomically(incoming / "manifest.json", json.dumps({**manifest, "files": files}, indent=2))
    for folder in [incoming, *(path for path in incoming.rglob("*") if path.is_dir())]:
        sync_folder(folder)


def standing(areas: Areas, release_id: str, format: str = "parquet") -> bool:
    """Whether a release is published already; finishes the last step of a run that died before it."""
    standing = Ledger(areas).standing()
    names = {entry.release_id: entry.name for entry in standing}
    if release_id not in names or not (areas.release(release_id) / "manifest.json").is_file():
        return False
    latest = [each for each, name in names.items() if name == names[release_id]][-1]
    if latest == release_id and current(areas) != release_id:
        _make_current(areas, release_id, format)
    return True


def current(areas: Areas) -> str | None:
    """Id of the current release, None where there is none."""
    if not areas.current.is_file():
        return None
    return str(json.loads(areas.current.read_text(encoding="utf-8"))["release_id"])


def _make_current(areas: Areas, release_id: str, format: str) -> None:
    if format == "delta":
        from pipelines.publication.formats.delta import commit

        commit(areas, release_id)
    write_atomically(areas.current, json.dumps({"release_id": release_id}))
