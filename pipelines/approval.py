"""The verbs ``approve``, ``reject`` and ``pending``: a person decides about a release that is verified."""

from __future__ import annotations

from dataclasses import replace

from microguard.pipelines.engine.command_result import CommandResult, look_again, now
from microguard.pipelines.publication.areas import PAGE, Areas
from microguard.pipelines.publication.find_release import find_release
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.pending_approval import pending_release
from microguard.pipelines.publication.publish import publish
from microguard.pipelines.publication.retention import retain
from microguard.pipelines.rebuild_report import at_work, redraw
from microguard.pipelines.series.source import joint_of, with_night
from microguard.pipelines.series.waiting_night import forget_state, require_as_verified
from microguard.schemas.errors import ProtectionFailed
from microguard.schemas.specification.model import Specification


def approve(named: str, *, by: str, note: str = "") -> CommandResult:
    """Publish a release that waits; the ledger keeps who said so, when, and why.

    Its files are compared with the checksums of when they were verified, as in every publication. Called
    again of a release that is published, it says so.

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
    AreaNotThere
        Where the public area is not the one that the ledger knows.
    ProtectionFailed
        Where its staged files are not what was verified.
    """
    release = find_release(named)
    areas, release_id = release.areas(), release.release_id

    def act() -> CommandResult:
        with at_work(areas):
            done = _published(areas, release_id, "is published already")
            return _approve(areas, release_id, by, note) if done is None else done

    def look() -> CommandResult | None:
        with at_work(areas):
            return _published(areas, release_id, "is published")

    return look_again(act, look)


def _approve(areas: Areas, release_id: str, by: str, note: str) -> CommandResult:
    waiting = pending_release(areas, release_id)
    require_as_verified(waiting, areas)
    entry = replace(waiting.entry, by=by, note=note)
    try:
        publish(waiting.staged, waiting.manifest, areas, entry, accepted=waiting.accepted)
    except ProtectionFailed as error:
        raise ProtectionFailed(
            f"{error} What was staged has changed since it was verified: run the job anew."
        ) from error
    retained = retain(areas, entry.name)
    redraw(areas, [*retained.withdrawn, release_id])
    areas.forget_work(release_id)
    return retained.added_to(_answer(areas, release_id, f"is approved by {by} and published"))


def _published(areas: Areas, release_id: str, what: str) -> CommandResult | None:
    """The answer about a release that a person had published, and which readers can see; else None."""
    status = Ledger(areas).status(release_id)
    if status is None or status.event != "published" or not status.by or not areas.public.exists(release_id):
        return None
    areas.forget_work(release_id)  # of a call that ended after it had published
    return _answer(areas, release_id, f"{what}, approved by {status.by} at {status.at}")


def _answer(areas: Areas, release_id: str, what: str) -> CommandResult:
    place, page = areas.public.place(release_id), areas.record(release_id) / PAGE
    content = {"release_id": release_id, "release": place, "report": str(page)}
    night = joint_of(areas, release_id).get("night", {})
    return with_night(CommandResult(f"Release {release_id} {what}.\nRelease: {place}", content), night)


def reject(named: str, *, by: str, note: str = "") -> CommandResult:
    """Refuse a release that waits: its staged files go, its evidence stays, the ledger keeps who and why.

    Called again of a release that is rejected, it says so.

    Raises
    ------
    SpecificationError
        Where it does not wait.
    AreaNotThere
        Where the public area is not the one that the ledger knows.
    """
    release = find_release(named)
    areas, release_id = release.areas(), release.release_id

    def act() -> CommandResult:
        with at_work(areas):
            return _rejected(areas, release_id, "already ") or _reject(areas, release_id, by, note)

    return look_again(act, lambda: _rejected(areas, release_id, ""))


def _reject(areas: Areas, release_id: str, by: str, note: str) -> CommandResult:
    waiting = pending_release(areas, release_id)
    entry = replace(waiting.entry, event="rejected", at=now(), by=by, note=note, public=areas.public.name)
    Ledger(areas).append(entry)
    forget_state(waiting, areas)
    areas.forget_work(release_id)
    redraw(areas, [release_id])
    outcome = _rejected(areas, release_id, "")
    assert outcome is not None
    return outcome


def _rejected(areas: Areas, release_id: str, already: str) -> CommandResult | None:
    """The answer about a release that a person has rejected; else None."""
    status = Ledger(areas).status(release_id)
    if status is None or status.event != "rejected":
        return None
    said = f"is {already}rejected by {status.by}: nothing was published, its evidence stays."
    return CommandResult(f"Release {release_id} {said}", {"release_id": release_id})


def pending(specification: Specification) -> CommandResult:
    """List the releases of a specification that wait for approval."""
    areas = Areas.from_places(specification.public_area, specification.evidence_area)
    waiting = Ledger(areas).pending(specification.release.name)
    lines = [
        f"{entry.release_id} since {entry.at}: {areas.record_place(entry.release_id)}" for entry in waiting
    ]
    text = "\n".join(lines) if lines else "No release of this specification waits for approval."
    rows = [
        {"release_id": each.release_id, "since": each.at, "evidence": areas.record_place(each.release_id)}
        for each in waiting
    ]
    return CommandResult(text, {"pending": rows})
