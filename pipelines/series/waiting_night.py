"""A night that waits for a person: what must still hold when it is approved, and what a rejection removes.

A waiting night was verified beside what was published before it. Its generation is sealed, and counts for
nothing until the ledger says that its release is published; a rejected one leaves the state as it was.
"""

from __future__ import annotations

from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.identity import SERIES
from microguard.pipelines.publication.ledger import Entry, Ledger
from microguard.pipelines.publication.pending_approval import PendingRelease
from microguard.pipelines.publication.source_fingerprints.conflicts import source_of
from microguard.pipelines.series.generations import generations_of
from microguard.pipelines.series.membership import MEMBERS
from microguard.pipelines.series.waiting_table import refuse_second_values
from microguard.schemas.errors import GateRefused


def require_as_verified(waiting: PendingRelease, areas: Areas) -> None:
    """Refuse to publish a night of a series, or a table, beside other releases than it was verified with.

    Raises
    ------
    GateRefused
    """
    kind, release_id = waiting.entry.identity.get(SERIES), waiting.entry.release_id
    since = _published_since(waiting, areas)
    refuse_second_values(waiting, since, areas)
    if kind is None:
        return
    overtaking = [entry.release_id for entry in since if _of_one_source(entry, waiting.entry)]
    if overtaking:
        raise _run_anew(
            f"Since release {release_id} was verified, {len(overtaking)} other release(s) of its source were "
            f"published ({', '.join(overtaking[:3])}): what they give away together is not known."
        )
    standing = {entry.release_id for entry in Ledger(areas).published()}
    withdrawn = sorted(set(waiting.manifest[SERIES].get("releases", ())) - standing - {release_id})
    if withdrawn:
        raise _run_anew(
            f"Since release {release_id} was verified, {len(withdrawn)} night(s) that it names as part of "
            f"the whole were withdrawn ({', '.join(withdrawn[:3])})."
        )
    if not (areas.record(release_id) / MEMBERS / "members.json").is_file():
        raise _run_anew(f"Which units release {release_id} holds is lost from its evidence.")
    if kind == "register":
        generations_of(areas, waiting.entry.name).require_next(release_id)


def forget_state(waiting: PendingRelease, areas: Areas) -> None:
    """Remove the generation of a night that was rejected."""
    if waiting.entry.identity.get(SERIES) == "register":
        generations_of(areas, waiting.entry.name).forget(waiting.entry.release_id)


def _published_since(waiting: PendingRelease, areas: Areas) -> list[Entry]:
    """Releases that were published after this one began to wait."""
    entries = Ledger(areas).entries()
    waits = (waiting.entry.release_id, "waiting")
    began = max(i for i, each in enumerate(entries) if (each.release_id, each.event) == waits)
    return [each for each in entries[began:] if each.event == "published"]


def _of_one_source(one: Entry, other: Entry) -> bool:
    return one.name == other.name or source_of(one) == source_of(other)


def _run_anew(reason: str) -> GateRefused:
    return GateRefused(
        f"{reason} Nothing was published. Reject it (microguard reject), and run the job anew: it is audited "
        "beside them then."
    )
