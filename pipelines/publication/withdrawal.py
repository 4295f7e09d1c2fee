"""Take a release out of the public area: a transaction that whoever comes next can finish."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

from pipelines.engine.files import sync_folder, write_atomically
from pipelines.engine.outcome import now
from pipelines.publication.areas import MANIFEST, Areas
from pipelines.publication.formats.table_format import forget_everywhere
from pipelines.publication.ledger import Entry, Event, Ledger


def withdraw_release(entry: Entry, areas: Areas) -> None:
    """Withdraw a standing release; to be called with both areas locked."""
    Ledger(areas).append(replace(entry, event="withdrawing", at=now()))
    take_out(entry, areas, "withdrawn")


def take_out(entry: Entry, areas: Areas, event: Event) -> None:
    """Remove a release whose going the ledger has announced; any part of it may be gone already.

    ``current.json`` goes back to the release before it that still stands, or goes where there is none; then
    the tables of the formats forget the release, its folder is renamed out of sight and deleted, and the
    ledger says that it is gone.
    """
    if areas.served() == entry.release_id:
        _step_back(entry, areas)
    forget_everywhere(areas, entry.release_id)
    remove_release(areas, entry.release_id)
    Ledger(areas).append(replace(entry, event=event, at=now()))


def _step_back(entry: Entry, areas: Areas) -> None:
    before = release_before(entry, areas)
    if before is None:
        areas.current.unlink()
        sync_folder(areas.public)
    else:
        write_atomically(areas.current, json.dumps({"release_id": before}))


def release_before(entry: Entry, areas: Areas) -> str | None:
    """The last release of the same name that still stands in the public area, other than this one."""
    others = [
        each.release_id
        for each in Ledger(areas).standing(entry.name)
        if each.release_id != entry.release_id and (areas.release(each.release_id) / MANIFEST).is_file()
    ]
    return others[-1] if others else None


def remove_release(areas: Areas, release_id: str) -> None:
    """Rename a release folder out of sight, then delete it; what an earlier try left goes too.

    Raises
    ------
    OSError
        Where something of it stays.
    """
    hidden = areas.public / f".{release_id}.withdrawn"
    for path in (hidden, areas.public / f".{release_id}.incoming"):
        if path.exists():
            shutil.rmtree(path)
    folder = areas.release(release_id)
    if folder.exists():
        folder.rename(hidden)
        sync_folder(areas.public)
        shutil.rmtree(hidden)
