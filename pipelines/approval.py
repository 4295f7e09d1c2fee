"""Verbs ``approve``, ``reject`` and ``pending``: a person decides about a verified release."""

from __future__ import annotations

from dataclasses import replace

from microguard.pipelines.answers import published_answer
from microguard.pipelines.engine.command_result import CommandResult, look_again, now
from microguard.pipelines.evidence.lineage import sent_lineage_of
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.find_release import find_release
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.publication.pending_approval import pending_release, require_earlier_stated
from microguard.pipelines.publication.publish import publish
from microguard.pipelines.publication.retention import retain
from microguard.pipelines.rebuild_report import at_work, rebuild_reports
from microguard.pipelines.series.pending_update import remove_state, require_as_verified
from microguard.schemas.errors import ProtectionFailed
from microguard.schemas.specification.model import Specification


def approve(named: str, *, by: str, note: str = "") -> CommandResult:
    """Publish a pending release; the ledger records who approved it, when and why.

    As in every publication, the files are compared with the checksums of their verification. A second call
    for a published release reports that the release is published.

    Parameters
    ----------
    named : str
        Folder of the release in the evidence area.

    Raises
    ------
    SpecificationError
        If the release is not pending.
    GateRefused
        If the release is an update of a series, and the releases with which it was verified have changed
        since; or if another release of its name was published since.
    AreaNotThere
        If the public area is not the one in the ledger.
    ProtectionFailed
        If the staged files differ from the verified files.
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

    record = areas.record(release_id)
    with sent_lineage_of(record) as ended:
        result = look_again(act, look)
        ended(record)
    return result


def _approve(areas: Areas, release_id: str, by: str, note: str) -> CommandResult:
    waiting = pending_release(areas, release_id)
    require_as_verified(waiting, areas)
    require_earlier_stated(waiting, areas)
    entry = replace(waiting.entry, by=by, note=note)
    try:
        publish(waiting.staged, waiting.manifest, areas, entry, accepted=waiting.accepted)
    except ProtectionFailed as error:
        raise ProtectionFailed(
            f"{error} The staged files have changed since they were verified: run the job again."
        ) from error
    retained = retain(areas, entry.name)
    rebuild_reports(areas, [*retained.withdrawn, release_id])
    areas.forget_work(release_id)
    return published_answer(
        areas, release_id, f"Release {release_id} is approved by {by} and published", retained
    )


def _published(areas: Areas, release_id: str, what: str) -> CommandResult | None:
    """Return the closing lines about a public release that a person approved; None if there is none."""
    status = Ledger(areas).status(release_id)
    if status is None or status.event != "published" or not status.by or not areas.public.exists(release_id):
        return None
    areas.forget_work(release_id)  # remove the work folder of a call that was killed after it had published
    text = f"Release {release_id} {what}, approved by {status.by} at {status.at}"
    return published_answer(areas, release_id, text)


def reject(named: str, *, by: str, note: str = "") -> CommandResult:
    """Reject a pending release: remove its staged files, keep its evidence, and record who rejected it and
    why.

    A second call for a rejected release reports that the release is rejected.

    Raises
    ------
    SpecificationError
        If the release is not pending.
    AreaNotThere
        If the public area is not the one in the ledger.
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
    remove_state(waiting, areas)
    areas.forget_work(release_id)
    rebuild_reports(areas, [release_id])
    outcome = _rejected(areas, release_id, "")
    assert outcome is not None
    return outcome


def _rejected(areas: Areas, release_id: str, already: str) -> CommandResult | None:
    """Return the closing lines about a release that a person rejected; None if there is none."""
    status = Ledger(areas).status(release_id)
    if status is None or status.event != "rejected":
        return None
    said = f"is {already}rejected by {status.by}: nothing was published, and its evidence is kept."
    return CommandResult(f"Release {release_id} {said}", {"release_id": release_id})


def pending(specification: Specification) -> CommandResult:
    """List the pending releases of a specification."""
    areas = Areas.from_places(specification.public_area, specification.evidence_area)
    waiting = Ledger(areas).pending(specification.release.name)
    lines = [
        f"{entry.release_id} since {entry.at}: {areas.record_place(entry.release_id)}" for entry in waiting
    ]
    if lines:
        lines.append(
            "Next: read report.html in the folder of a release, then microguard approve FOLDER --by NAME, or "
            "microguard reject FOLDER --by NAME"
        )
    text = "\n".join(lines or ["No release of this specification is pending approval."])
    rows = [
        {"release_id": each.release_id, "since": each.at, "evidence": areas.record_place(each.release_id)}
        for each in waiting
    ]
    return CommandResult(text, {"pending": rows})
