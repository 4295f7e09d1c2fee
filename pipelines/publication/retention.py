"""Retention: of the releases of a name only the newest few stand, as ``publish.keep`` says.

The line that says that a release is published holds how many stand beside it, so that whoever comes after a
kill finishes what it asks for from the ledger alone. Copies that readers have made are out of reach: the
ledger and the audit of a source go on knowing what was withdrawn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.ledger import Entry, Ledger, is_in
from microguard.pipelines.publication.withdrawal import withdraw_release


@dataclass(frozen=True)
class Retained:
    """What retention did; the release that called for it is published whatever became of the older ones.

    Attributes
    ----------
    withdrawn : tuple of str
        Ids of releases that are gone.
    left : tuple of str
        Ids of releases that could not be withdrawn whole.
    """

    withdrawn: tuple[str, ...]
    left: tuple[str, ...]

    def added_to(self, outcome: CommandResult) -> CommandResult:
        """The answer of a verb that published, with what became of the older releases."""
        text, content = outcome.text, dict(outcome.content)
        if self.withdrawn:
            text += f"\nWithdrawn, as publish.keep asks for: {', '.join(self.withdrawn)}"
            content["withdrawn"] = list(self.withdrawn)
        if self.left:
            text += (
                f"\nNot withdrawn, although publish.keep asks for it: {', '.join(self.left)}. Readers may "
                "still find them. Look at the rights and the disk of the public area; the next run tries "
                "again, and goes no further until they are gone."
            )
            content["not_withdrawn"] = list(self.left)
        return CommandResult(text, content)


def retain(areas: Areas, name: str) -> Retained:
    """Withdraw the releases that a publication under a name has outlived; what fails is said, not raised.

    To be called with the evidence area locked, once the publication is done.
    """
    withdrawn, left = [], []
    for entry in expired_releases(areas, name):
        try:
            with areas.public.lock():
                withdraw_release(entry, areas)
        except Exception:  # the new release is published: nothing here may say otherwise
            left.append(entry.release_id)
        else:
            withdrawn.append(entry.release_id)
    return Retained(tuple(withdrawn), tuple(left))


def expired_releases(areas: Areas, name: str) -> list[Entry]:
    """Releases of a name that are to go, oldest first, as lines that say why.

    As many stay as the newest publication asks for; the current release stays in any case. Releases of the
    name in another public area are not looked at.
    """
    newest = [entry for entry in Ledger(areas).published(name) if is_in(entry, areas.public)]
    if not newest or newest[-1].keep is None:
        return []
    why = f"publish.keep = {newest[-1].keep}: outlived by release {newest[-1].release_id}"
    served = areas.public.current()
    old = newest[: -newest[-1].keep]
    return [replace(entry, by="", note=why) for entry in old if entry.release_id != served]
