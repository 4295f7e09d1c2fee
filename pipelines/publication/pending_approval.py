"""Releases that are pending approval: verified and staged in the evidence area, published once approved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from microguard.pipelines.engine.command_result import now
from microguard.pipelines.engine.files import read_json, write_atomically
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.identity import SERIES
from microguard.pipelines.publication.ledger import Entry, Ledger
from microguard.pipelines.publication.manifest import DIFFERENCING
from microguard.pipelines.publication.stage import StagedFiles
from microguard.pipelines.publication.stored_evidence import STAGING, WAITING
from microguard.pipelines.publication.withdrawal import withdraw_release
from microguard.schemas.errors import GateRefused, SpecificationError

#: Note in the ledger about a release that was withdrawn in order to be made again.
DAMAGED = "its files in the public area were damaged"


@dataclass(frozen=True)
class PendingRelease:
    """Everything that is needed to publish a verified release.

    Attributes
    ----------
    staged : StagedFiles
        Staged files with the checksums of their verification.
    manifest : mapping
    entry : Entry
    accepted : bool
        Whether a steward accepted another release of the name.
    """

    staged: StagedFiles
    manifest: Mapping[str, Any]
    entry: Entry
    accepted: bool


def submit_for_approval(waiting: PendingRelease, areas: Areas) -> bool:
    """Move a verified release to its evidence folder, and record in the ledger that it is pending approval.

    A release that is made again because its published files were damaged is withdrawn first: until a person
    approves it, readers must not find the damaged files.

    Returns
    -------
    bool
        Whether damaged files of the release were removed from the public area.
    """
    damaged = is_visible(areas, waiting.entry.release_id)
    if damaged:
        with areas.public.lock():
            withdraw_release(replace(waiting.entry, note=DAMAGED), areas)
    content = {
        "checksums": dict(waiting.staged.checksums),
        "manifest": waiting.manifest,
        "entry": asdict(waiting.entry),
        "accepted": waiting.accepted,
    }
    write_atomically(areas.record(waiting.entry.release_id) / WAITING, json.dumps(content, indent=2))
    Ledger(areas).append(replace(waiting.entry, event="waiting", at=now(), public=areas.public.name))
    return damaged


def pending_release(areas: Areas, release_id: str) -> PendingRelease:
    """Read a release that is pending approval.

    Raises
    ------
    SpecificationError
        If the release is not pending approval.
    """
    status = Ledger(areas).status(release_id)
    if status is None or status.event != "waiting":
        event = "is not known" if status is None else f"is {status.event}"
        raise SpecificationError(
            f"Release {release_id} is not pending approval: by the ledger it {event}. List the pending "
            "releases with microguard pending."
        )
    path, what = areas.record(release_id) / WAITING, f"{WAITING} of release {release_id}"
    remedy = "Reject the release (microguard reject), and run its job again."
    content = read_json(path, what, remedy, "checksums", "manifest", "entry", "accepted")
    staged = StagedFiles(release_id, _staging(areas, release_id), content["checksums"])
    return PendingRelease(staged, content["manifest"], Entry(**content["entry"]), content["accepted"])


def is_visible(areas: Areas, release_id: str) -> bool:
    """Return whether readers may find a release, or a part of it."""
    published = release_id in {each.release_id for each in Ledger(areas).published()}
    return published or areas.public.exists(release_id) or areas.public.current() == release_id


def is_pending(areas: Areas, release_id: str) -> bool:
    """Return whether a release is pending, invisible to readers, and has the staged files as verified."""
    status = Ledger(areas).status(release_id)
    if status is None or status.event != "waiting" or is_visible(areas, release_id):
        return False
    staged = pending_release(areas, release_id).staged
    return StagedFiles.from_folder(release_id, staged.folder).checksums == staged.checksums


def refuse_beside_pending(areas: Areas, name: str, release_id: str) -> None:
    """Refuse a release of a series while another one is pending: approving both would fork the series.

    Raises
    ------
    GateRefused
    """
    others = [each for each in Ledger(areas).pending(name) if each.release_id != release_id]
    if others:
        folder = areas.record_place(others[0].release_id)
        raise GateRefused(
            f"Release {others[0].release_id} of this series is pending approval since {others[0].at}, and "
            "the next release depends on the decision. Nothing was changed. Decide first (microguard "
            f"approve {folder} --by NAME, or microguard reject {folder} --by NAME), then call this again."
        )


def require_earlier_stated(pending: PendingRelease, areas: Areas) -> None:
    """Refuse a manifest that was written before another release of the name was published.

    Such a manifest does not warn that this release can be compared with copies of the other one, even if the
    other one was withdrawn since.

    Raises
    ------
    GateRefused
    """
    entry, ledger = pending.entry, Ledger(areas)
    others = [each for each in ledger.ever_published(entry.name) if each != entry.release_id]
    if others and SERIES not in entry.identity and DIFFERENCING not in pending.manifest.get("limits", ()):
        raise GateRefused(
            f"Release {entry.release_id}: since it was verified, another release of its name was published "
            f"({', '.join(others[:3])}), and its manifest does not say that the two can be differenced. "
            "Nothing was published. Reject it if it is pending approval (microguard reject), and run the "
            "job again."
        )


def _staging(areas: Areas, release_id: str) -> Path:
    return areas.work(release_id, STAGING)
