"""Verb ``audit``: count what all releases of a source, and of its evidence area, disclose together."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.publication.area_audit import area_exposure
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.series.source import (
    joint_exposure_of,
    releases_of,
    same_records_elsewhere,
    source_of,
)
from microguard.schemas.errors import GateRefused
from microguard.schemas.specification.model import Specification

if TYPE_CHECKING:
    from microguard.pipelines.audit.joint.exposure import AreaExposure


def audit_source(specification: Specification) -> CommandResult:
    """Audit all releases of a source together, and all releases of the evidence area as one system.

    Parameters
    ----------
    specification : Specification
        Specification that names the source and its evidence area.

    Raises
    ------
    GateRefused
        If anything is disclosed, or a release cannot be compared; the message has counts and ids, never
        values.
    """
    areas = Areas.from_places(specification.public_area, specification.evidence_area)
    entries, source = releases_of(areas, specification), source_of(specification)
    elsewhere = same_records_elsewhere(areas, specification)
    known = {entry.release_id for entry in entries}
    exposure = joint_exposure_of(areas, entries, compare_again=True)
    of_other_areas = [each.release_id for each in elsewhere if each.release_id not in known]
    exposure = replace(exposure, not_compared=(*exposure.not_compared, *of_other_areas))
    faults = []
    if not exposure.safe:
        alone = " Release {} alone, combined with the last release, exposes {} units."
        collisions = "".join(alone.format(*each) for each in exposure.collisions)
        other = " The same records were published under another source, as {} ({!r}, {})."
        collisions += "".join(other.format(each.release_id, each.name, each.path) for each in elsewhere)
        faults.append(
            f"The {len(entries)} release(s) of the source {source!r} together expose units: "
            f"{'; '.join(exposure.faults())}.{collisions}"
        )
    area = area_exposure(areas)
    if not area.safe:
        faults.append(
            f"The {len(area.releases)} release(s) of the evidence area together disclose more than each of "
            f"them alone: {'; '.join((*area.faults(), *area.notes()))}."
        )
    if faults:
        raise GateRefused(
            f"{' '.join(faults)} Withdraw the releases that can be withdrawn (existing copies remain), and "
            "find out why they were published together."
        )
    content = {"source": source, **asdict(exposure), "area": area.content()}
    if not area.releases:
        text = f"No release of the source {source!r} has been published yet, so there is nothing to audit."
        return CommandResult(text, content)
    text = (
        f"The {len(entries)} release(s) of the source {source!r} expose no unit together: {exposure.units} "
        f"units, each history shared by at least {exposure.smallest_history}.\n{_statement(area)}"
    )
    return CommandResult(text, content)


def _statement(area: AreaExposure) -> str:
    """Return the verdict on an area without faults, with the number of secrets that attackers learn."""
    systems = f"{area.components} shared systems, {area.solved} of them new"
    releases = f"the {len(area.releases)} release(s) of the evidence area"
    within = area.within_limits()
    learnt = (
        f"together disclose no more than the limits allow ({'; '.join(within)})"
        if within
        else "determine no secret together"
    )
    if area.verdict == "green":
        return f"{releases.capitalize()} {learnt}: {systems}."
    return (
        f"Not all of {releases} could be examined: {'; '.join(area.notes())}. In the examined part, they "
        f"{learnt}: {systems}. The rest is unknown."
    )
