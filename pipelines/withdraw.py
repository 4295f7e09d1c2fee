"""Withdraw a release: readers lose it, the ledger keeps that it was there."""

from __future__ import annotations

from pipelines.engine.outcome import Outcome
from pipelines.publication.find_release import find_release
from pipelines.publication.ledger import Ledger
from pipelines.publication.withdrawal import withdraw_release
from pipelines.redraw import at_work, redraw
from schemas.errors import SpecificationError


def withdraw(named: str) -> Outcome:
    """Remove a release from the public area, the history of its table included, and record it.

    Where it was the current one, the release before it that still stands becomes current again.

    Parameters
    ----------
    named : str
        A release folder, a public area (its current release), or a specification file.

    Raises
    ------
    SpecificationError
        Where the ledger knows no such release, or its evidence area is not found.
    """
    release = find_release(named)
    areas = release.areas()
    was_current = areas.public.served() == release.release_id
    with at_work(areas) as going:
        standing = {entry.release_id: entry for entry in Ledger(areas).standing()}
        if release.release_id in standing:
            with areas.public.lock():
                withdraw_release(standing[release.release_id], areas)
        elif release.release_id not in going:  # nor gone a moment ago, with what a killed run left
            raise SpecificationError(
                "The ledger knows no standing release of this id: nothing was withdrawn."
            )
        successor = areas.public.served()
        redraw(areas, [release.release_id])
    text = f"Release {release.release_id} is withdrawn: it is gone from the public area" + (
        "" if not was_current else ", and there is no current release now" if successor is None
        else f", and release {successor}, which was published before it, is current again"
    )  # fmt: skip
    content = {"release_id": release.release_id, "was_current": was_current, "current": successor}
    return Outcome(f"{text}. Copies that readers have made are out of reach.", content)
