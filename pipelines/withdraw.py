"""Withdraw a release: readers lose it, the ledger keeps that it was there."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime

from pipelines.engine.outcome import Outcome
from pipelines.publication.find_release import locate
from pipelines.publication.ledger import Entry, Ledger
from pipelines.publication.publish import current
from schemas.errors import SpecificationError


def withdraw(named: str) -> Outcome:
    """Remove a release from the public area, its Delta history included, and record it.

    ``current.json`` goes first where it names the release; no earlier release becomes current in its
    place, because a steward did not decide that.

    Parameters
    ----------
    named : str
        A release folder, a public area (its current release), or a specification file.

    Raises
    ------
    SpecificationError
        Where the ledger knows no such release, or its evidence area is not found.
    """
    located = locate(named)
    areas = located.areas()
    with areas.lock():
        ledger = Ledger(areas)
        standing = {entry.release_id: entry for entry in ledger.standing()}
        if located.release_id not in standing:
            raise SpecificationError(
                "The ledger knows no standing release of this id: nothing was withdrawn."
            )
        was_current = current(areas) == located.release_id
        if was_current:
            areas.current.unlink()
        if (areas.public / "delta").is_dir():
            from pipelines.publication.formats.delta import forget

            forget(areas, located.release_id)
        shutil.rmtree(areas.release(located.release_id), ignore_errors=True)
        if areas.release(located.release_id).exists():
            raise OSError("the release folder could not be removed")
        earlier = standing[located.release_id]
        now = datetime.now(UTC).isoformat(timespec="seconds")
        ledger.append(Entry("withdrawn", earlier.release_id, earlier.name, now, earlier.identity))
    text = (
        f"Release {located.release_id} is withdrawn: it is gone from the public area"
        + (", and there is no current release now" if was_current else "")
        + ". Copies that readers have made are out of reach."
    )
    return Outcome(text, {"release_id": located.release_id, "was_current": was_current})
