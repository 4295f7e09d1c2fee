"""Withdraw a release: readers lose it, the ledger keeps that it was there."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime

from pipelines.ledger import Entry, Ledger
from pipelines.locate import Located
from pipelines.publish import current
from schemas.errors import SpecificationError


def withdraw(located: Located) -> str:
    """Remove a release from the public area, its Delta history included, and record it.

    ``current.json`` goes first where it names the release; no earlier release becomes current in its
    place, because a steward did not decide that.

    Returns
    -------
    str
        One sentence about what was done.
    """
    places = located.places()
    with places.lock():
        ledger = Ledger(places)
        standing = {entry.release_id: entry for entry in ledger.standing()}
        if located.release_id not in standing:
            raise SpecificationError(
                "The ledger knows no standing release of this id: nothing was withdrawn."
            )
        was_current = current(places) == located.release_id
        if was_current:
            places.current.unlink()
        if (places.public / "delta").is_dir():
            from pipelines.delta import forget

            forget(places, located.release_id)
        shutil.rmtree(places.release(located.release_id), ignore_errors=True)
        if places.release(located.release_id).exists():
            raise OSError("the release folder could not be removed")
        earlier = standing[located.release_id]
        now = datetime.now(UTC).isoformat(timespec="seconds")
        ledger.append(Entry("withdrawn", earlier.release_id, earlier.name, now, earlier.identity))
    return (
        f"Release {located.release_id} is withdrawn: it is gone from the public area"
        + (", and there is no current release now" if was_current else "")
        + ". Copies that readers have made are out of reach."
    )
