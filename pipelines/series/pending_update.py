"""Check the conditions for approving an update that is pending approval, and clean up after a rejection.

A pending update was verified together with all earlier releases. Its generation is sealed but not valid until
its release is published; a rejection leaves the state unchanged.
"""

from __future__ import annotations

from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.identity import SERIES
from microguard.pipelines.publication.ledger import Entry, Ledger
from microguard.pipelines.publication.pending_approval import PendingRelease
from microguard.pipelines.publication.source_fingerprints.conflicts import source_of
from microguard.pipelines.series.generations import generations_of
from microguard.pipelines.series.membership import MEMBERS
from microguard.pipelines.series.pending_table import refuse_second_values
from microguard.schemas.errors import GateRefused


def require_as_verified(waiting: PendingRelease, areas: Areas) -> None:
    """Refuse to publish an update or table if releases were published or withdrawn since its verification.

    Raises
    ------
    GateRefused
    """
    kind, release_id = waiting.entry.identity.get(SERIES), waiting.entry.release_id
    since = _since_submitted(waiting, areas)
    refuse_second_values(waiting, since, areas)
    if kind is None:
        return
    others = [entry.release_id for entry in since if _of_one_source(entry, waiting.entry)]
    if others:
        raise _run_anew(
            f"Since release {release_id} was verified, {len(others)} other release(s) of its source were "
            f"published ({', '.join(others[:3])}): their joint disclosure is unknown."
        )
    public = {entry.release_id for entry in Ledger(areas).published()}
    withdrawn = sorted(set(waiting.manifest[SERIES].get("releases", ())) - public - {release_id})
    if withdrawn:
        raise _run_anew(
            f"The manifest of release {release_id} lists {len(withdrawn)} update(s) of its series that were "
            f"withdrawn since its verification ({', '.join(withdrawn[:3])})."
        )
    if not (areas.record(release_id) / MEMBERS / "members.json").is_file():
        raise _run_anew(f"The evidence of release {release_id} lacks the map of its units.")
    if kind == "register":
        generations_of(areas, waiting.entry.name).require_next(release_id)


def remove_state(waiting: PendingRelease, areas: Areas) -> None:
    """Remove the generation of an update that was rejected."""
    if waiting.entry.identity.get(SERIES) == "register":
        generations_of(areas, waiting.entry.name).forget(waiting.entry.release_id)


def _since_submitted(waiting: PendingRelease, areas: Areas) -> list[Entry]:
    """Return the releases that were published since this release was submitted for approval."""
    entries = Ledger(areas).entries()
    waits = (waiting.entry.release_id, "waiting")
    began = max(i for i, each in enumerate(entries) if (each.release_id, each.event) == waits)
    return [each for each in entries[began:] if each.event == "published"]


def _of_one_source(one: Entry, other: Entry) -> bool:
    return one.name == other.name or source_of(one) == source_of(other)


def _run_anew(reason: str) -> GateRefused:
    return GateRefused(
        f"{reason} Nothing was published. Reject it (microguard reject), and run the job again: it is then "
        "audited together with them."
    )
