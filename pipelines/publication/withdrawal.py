"""Withdrawal of a release from the public area, in steps that a later run can complete.

The ledger line ``withdrawn`` is written only after the release is missing from its area.
"""

from __future__ import annotations

from dataclasses import replace

from microguard.pipelines.engine.command_result import now
from microguard.pipelines.publication.area_identity import require_area, require_gone
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.formats.table_format import forget_everywhere
from microguard.pipelines.publication.ledger import Entry, Event, Ledger


def withdraw_release(entry: Entry, areas: Areas) -> None:
    """Withdraw a release from its public area; the caller must hold the locks of both areas.

    Raises
    ------
    AreaNotThere
    """
    entry = replace(entry, public=areas.public.name, area=require_area(areas))
    Ledger(areas).append(replace(entry, event="withdrawing", at=now()))
    remove_release(entry, areas, "withdrawn")


def remove_release(entry: Entry, areas: Areas, event: Event) -> None:
    """Remove a release after the ledger has its first line; parts of the release may already be removed.

    First ``current.json`` is set to the previous published release, or is deleted. Then the release is
    removed from the tables of the formats and from the area, and the line `event` is written to the ledger.

    Raises
    ------
    AreaNotThere
        If the area of the ledger is missing at its place; a later run finishes the removal.
    """
    identity = require_area(areas)
    if areas.public.current() == entry.release_id:
        areas.public.set_current(release_before(entry, areas))
    forget_everywhere(areas.public, entry.release_id, entry.catalog, entry.table)
    areas.public.remove(entry.release_id)
    require_gone(entry.release_id, areas)
    Ledger(areas).append(replace(entry, event=event, at=now(), area=identity))


def release_before(entry: Entry, areas: Areas) -> str | None:
    """Return the latest other release of the same name that is published and visible; None if there
    is none.
    """
    others = [
        each.release_id
        for each in Ledger(areas).published(entry.name)
        if each.release_id != entry.release_id and areas.public.exists(each.release_id)
    ]
    return others[-1] if others else None
