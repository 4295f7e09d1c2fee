"""Withdraw a release: readers lose it, the ledger keeps that it was there."""

from __future__ import annotations

from pipelines.engine.outcome import Outcome
from pipelines.publication.find_release import FoundRelease, find_release, half_withdrawn
from pipelines.publication.ledger import Event, Ledger
from pipelines.publication.withdrawal import withdraw_release
from pipelines.redraw import at_work, redraw
from schemas.errors import SpecificationError

#: What the ledger says last of a release that is no longer in the public area.
GONE: frozenset[Event] = frozenset({"withdrawn", "abandoned"})


def withdraw(named: str) -> Outcome:
    """Remove a release from the public area, the history of its table included, and record it.

    Where it was the current one, the release before it that still stands becomes current again. Called again
    after a kill, it ends what it had begun, and takes no other release along.

    Parameters
    ----------
    named : str
        A release folder, a public area (its current release), or a specification file.

    Raises
    ------
    SpecificationError
        Where the ledger knows no such release, or has it elsewhere, or its evidence area is not found.
    """
    release = find_release(named, gone=True)
    areas = release.areas()
    meant, before = _meant(release, Ledger(areas)), areas.public.served()
    with at_work(areas):
        status = Ledger(areas).status(meant)
        if status is not None and status.public not in ("", areas.public.name):
            raise SpecificationError(
                f"The ledger has this release in another public area, {status.public}: this is a copy, or "
                "the area was moved. Nothing was withdrawn. Name the release there, or by its folder in the "
                "evidence area, and delete copies by hand."
            )
        if status is not None and status.event == "published":
            with areas.public.lock():
                withdraw_release(status, areas)
        elif status is None or status.event not in GONE:
            raise SpecificationError(
                "The ledger knows no standing release of this id: nothing was withdrawn."
            )
        successor = areas.public.served()
        redraw(areas, [meant])
    was_current = meant == before
    text = f"Release {meant} is withdrawn: it is gone from the public area" + (
        "" if not was_current else ", and there is no current release now" if successor is None
        else f", and release {successor}, which was published before it, is current again"
    )  # fmt: skip
    kept = "" if areas.public.folder is not None else ", and so are versions of objects that the store keeps"
    content = {"release_id": meant, "was_current": was_current, "current": successor}
    return Outcome(f"{text}. Copies that readers have made are out of reach{kept}.", content)


def _meant(release: FoundRelease, ledger: Ledger) -> str:
    """Id of the release to withdraw: where an area was named, its newest that is not gone.

    A call that was killed may have led readers to the release before, which nobody asked to withdraw.
    """
    if not release.as_current:
        return release.release_id
    ids = {release.release_id, *half_withdrawn(ledger, release.public)}
    published = [each.release_id for each in ledger.entries() if each.event == "published"]
    return [release.release_id, *(each for each in published if each in ids)][-1]
