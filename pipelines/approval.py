"""The verbs ``approve``, ``reject`` and ``pending``: a person decides about a release that is verified."""

from __future__ import annotations

from dataclasses import replace

from pipelines.engine.outcome import Outcome, now
from pipelines.publication.areas import Areas
from pipelines.publication.find_release import find_release
from pipelines.publication.ledger import Ledger
from pipelines.publication.publish import publish
from pipelines.publication.retention import retain
from pipelines.publication.waiting import waiting_release
from pipelines.redraw import at_work, redraw, write_page_of
from pipelines.series.source import joint_of, with_night
from pipelines.series.waiting_night import forget_state, require_as_verified
from schemas.errors import ProtectionFailed
from schemas.specification.model import Specification


def approve(named: str, *, by: str, note: str = "") -> Outcome:
    """Publish a release that waits; the ledger keeps who said so, when, and why.

    Its files are compared with the checksums of when they were verified, as in every publication.

    Parameters
    ----------
    named : str
        Its folder in the evidence area.

    Raises
    ------
    SpecificationError
        Where it does not wait.
    GateRefused
        Where it is a night of a series, and what it was verified beside has changed since.
    ProtectionFailed
        Where its staged files are not what was verified.
    """
    release = find_release(named)
    areas = release.areas()
    with at_work(areas):
        waiting = waiting_release(areas, release.release_id)
        require_as_verified(waiting, areas)
        entry = replace(waiting.entry, by=by, note=note)
        try:
            publish(waiting.staged, waiting.manifest, areas, entry, accepted=waiting.accepted)
        except ProtectionFailed as error:
            raise ProtectionFailed(
                f"{error} What was staged has changed since it was verified: run the job anew."
            ) from error
        retained = retain(areas, entry.name)
        redraw(areas, retained.withdrawn)
        areas.forget_work(release.release_id)
        page = write_page_of(areas, release.release_id)
    place = release.public.place(release.release_id)
    text = f"Release {release.release_id} is approved by {by} and published.\nRelease: {place}"
    content = {"release_id": release.release_id, "release": place, "report": str(page)}
    night = joint_of(areas, release.release_id).get("night", {})
    return retained.added_to(with_night(Outcome(text, content), night))


def reject(named: str, *, by: str, note: str = "") -> Outcome:
    """Refuse a release that waits: its staged files go, its evidence stays, the ledger keeps who and why."""
    release = find_release(named)
    areas = release.areas()
    with at_work(areas):
        waiting = waiting_release(areas, release.release_id)
        entry = replace(waiting.entry, event="rejected", at=now(), by=by, note=note, public=areas.public.name)
        Ledger(areas).append(entry)
        forget_state(waiting, areas)
        areas.forget_work(release.release_id)
        write_page_of(areas, release.release_id)
    text = f"Release {release.release_id} is rejected by {by}: nothing was published, its evidence stays."
    return Outcome(text, {"release_id": release.release_id})


def pending(specification: Specification) -> Outcome:
    """List the releases of a specification that wait for approval."""
    areas = Areas.of(specification.public_area, specification.evidence_area)
    waiting = Ledger(areas).waiting(specification.release.name)
    lines = [
        f"{entry.release_id} since {entry.at}: {areas.record_place(entry.release_id)}" for entry in waiting
    ]
    text = "\n".join(lines) if lines else "No release of this specification waits for approval."
    rows = [
        {"release_id": each.release_id, "since": each.at, "evidence": areas.record_place(each.release_id)}
        for each in waiting
    ]
    return Outcome(text, {"pending": rows})
