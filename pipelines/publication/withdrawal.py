"""Take a release out of the public area: a transaction that whoever comes next can finish.

The ledger says that a release is gone only after a look at the area that it was in.
"""

from __future__ import annotations

from dataclasses import replace

from microguard.pipelines.engine.command_result import now
from microguard.pipelines.publication.area_identity import require_area, require_gone
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.formats.table_format import forget_everywhere
from microguard.pipelines.publication.ledger import Entry, Event, Ledger


def withdraw_release(entry: Entry, areas: Areas) -> None:
    """Withdraw a release that is in the area; to be called with both areas locked.

    Raises
    ------
    AreaNotThere
    """
    entry = replace(entry, public=areas.public.name, area=require_area(areas))
    Ledger(areas).append(replace(entry, event="withdrawing", at=now()))
    remove_release(entry, areas, "withdrawn")


def remove_release(entry: Entry, areas: Areas, event: Event) -> None:
    """Remove a release whose going the ledger has announced; any part of it may be gone already.

    ``current.json`` goes back to the release before it that still stands, or goes where there is none; then
    the tables of the formats forget the release, it is taken out of sight and deleted, and the ledger says
    that it is gone.

    Raises
    ------
    AreaNotThere
        Where the area of the ledger is not at its place; what was begun stays to be finished.
    """
    identity = require_area(areas)
    if areas.public.current() == entry.release_id:
        areas.public.set_current(release_before(entry, areas))
    if areas.public.folder is not None:
        forget_everywhere(areas.public.folder, entry.release_id)
    areas.public.remove(entry.release_id)
    require_gone(entry.release_id, areas)
    Ledger(areas).append(replace(entry, event=event, at=now(), area=identity))


def release_before(entry: Entry, areas: Areas) -> str | None:
    """The last release of the same name that still stands in the public area, other than this one."""
    others = [
        each.release_id
        for each in Ledger(areas).published(entry.name)
        if each.release_id != entry.release_id and areas.public.exists(each.release_id)
    ]
    return others[-1] if others else None
