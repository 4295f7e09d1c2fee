"""Verb ``history``: list the releases of a source, one line for each."""

from __future__ import annotations

from typing import Any

from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.evidence.joint import SHOWN, joint_of
from microguard.pipelines.publication.area_identity import AreaNotThere, known_area
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.ledger import Entry, Ledger, public_area_of
from microguard.pipelines.series.source import releases_of, source_of
from microguard.schemas.specification.model import Specification


def history(specification: Specification) -> CommandResult:
    """List the releases of a source: units, entrants, exits, pending units, and what they disclose together.

    Parameters
    ----------
    specification : Specification
        Specification that names the source and its evidence area.
    """
    areas = Areas.from_places(specification.public_area, specification.evidence_area)
    status = Ledger(areas).latest()
    rows = [_row(entry, status[entry.release_id], areas) for entry in releases_of(areas, specification)]
    source = source_of(specification)
    if not rows:
        return CommandResult(
            f"No release of the source {source!r} has been published yet.", {"source": source, "releases": []}
        )
    heads = ["release", "name", "period", "state", *SHOWN, "below k"]
    table = [heads, *[["-" if row[head] is None else str(row[head]) for head in heads] for row in rows]]
    widths = [max(len(line[i]) for line in table) for i in range(len(heads))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in table]
    return CommandResult("\n".join(line.rstrip() for line in lines), {"source": source, "releases": rows})


def _row(entry: Entry, last: Entry, areas: Areas) -> dict[str, Any]:
    joint = joint_of(areas, entry.release_id)
    counts = joint.get("night", {})
    return {
        "release": entry.release_id,
        "name": entry.name,
        "period": entry.identity.get("specification", {}).get("release", {}).get("period"),
        "state": _state(last, areas),
        **{name: counts.get(name) for name in SHOWN},
        "below k": joint.get("joint", {}).get("below_k"),
    }


def _state(last: Entry, areas: Areas) -> str:
    """Return the last event in the ledger; "stands" is returned only if the release exists in its public
    area.
    """
    if last.event != "published":
        return last.event
    area = public_area_of(last, areas)
    try:
        known_area(area)
    except AreaNotThere:
        return "area not there"
    return "stands" if area.public.exists(last.release_id) else "missing"
