"""Retention: keep only the newest releases of a name published (``publish.keep``).

The ledger line of a publication states the number of releases to keep, so that the run after a kill can
finish the retention from the ledger alone. Copies that readers have made cannot be withdrawn: the ledger and
the audit of a source therefore still count withdrawn releases.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.ledger import Entry, Ledger, is_in
from microguard.pipelines.publication.withdrawal import withdraw_release


@dataclass(frozen=True)
class Retained:
    """The result of retention; the new release stays published even if older ones could not be withdrawn.

    Attributes
    ----------
    withdrawn : tuple of str
        Ids of the releases that were withdrawn.
    left : tuple of str
        Ids of the releases that could not be withdrawn completely.
    """

    withdrawn: tuple[str, ...]
    left: tuple[str, ...]

    def added_to(self, outcome: CommandResult) -> CommandResult:
        """Return the result of a publishing verb, and state the withdrawn and the remaining releases."""
        if self.left:
            outcome = outcome.with_note(
                f"Not withdrawn, although publish.keep requires it: {', '.join(self.left)}. Readers may "
                "still find them. Check the permissions and the disk of the public area; the next run tries "
                "again, and publishes nothing until they are withdrawn.",
                not_withdrawn=list(self.left),
            )
        if self.withdrawn:
            outcome = outcome.with_note(
                f"Withdrawn, as publish.keep requires: {', '.join(self.withdrawn)}",
                withdrawn=list(self.withdrawn),
            )
        return outcome


def retain(areas: Areas, name: str) -> Retained:
    """Withdraw the expired releases of a name; report failures in the result instead of raising them.

    Call this after a publication, with the evidence area locked.
    """
    withdrawn, left = [], []
    for entry in expired_releases(areas, name):
        try:
            with areas.public.lock():
                withdraw_release(entry, areas)
        except Exception:  # not raised: the new release is published all the same
            left.append(entry.release_id)
        else:
            withdrawn.append(entry.release_id)
    return Retained(tuple(withdrawn), tuple(left))


def expired_releases(areas: Areas, name: str) -> list[Entry]:
    """Return the releases of a name that retention withdraws, oldest first, as ledger lines with the reason.

    The newest publication determines the number of releases to keep. The current release is always kept.
    Releases of the name in another public area are not withdrawn.
    """
    newest = [entry for entry in Ledger(areas).published(name) if is_in(entry, areas.public)]
    if not newest or newest[-1].keep is None:
        return []
    why = f"publish.keep = {newest[-1].keep}: superseded by release {newest[-1].release_id}"
    current = areas.public.current()
    old = newest[: -newest[-1].keep]
    return [replace(entry, by="", note=why) for entry in old if entry.release_id != current]
