"""The ledger of an evidence area: what was published under which name, and what was withdrawn.

Two releases made from the same records can be differenced; so a second one under the same name is
refused unless a steward has decided that both may stand.

What changes the public area is written down before it happens and again when it is done: ``intended``
comes before a release appears and ``published`` once all of it is there, ``withdrawing`` comes before a
release goes and ``withdrawn`` once it is gone. A release that needs approval is ``waiting`` until it is
intended or ``rejected``. A run that finds an intention without its end finishes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from microguard.pipelines.engine.files import PRIVATE_FILE, FileDamaged
from microguard.pipelines.publication.areas import INDEX, LEDGER, PAGE, Areas
from microguard.pipelines.publication.public_area import PublicArea, public_area
from microguard.schemas.errors import GateRefused, MicroguardError

Event = Literal["waiting", "rejected", "intended", "published", "abandoned", "withdrawing", "withdrawn"]
NEVER_PUBLIC: frozenset[Event] = frozenset({"waiting", "rejected"})
#: What the ledger says last of a release that is no longer in the public area.
GONE: frozenset[Event] = frozenset({"withdrawn", "abandoned"})


#: Release id -> the areas whose ledger got a line about it from this process: what a signal is answered by.
_WRITTEN: dict[str, Areas] = {}


@dataclass(frozen=True)
class Entry:
    """One line of the ledger.

    Attributes
    ----------
    event : str
        What happened to the release, one of `Event`.
    release_id, name, at : str
    identity : dict
        What the release is made from.
    public : str
        Place of the public area; "" in lines of the first version, which had one area for each ledger.
    area : str
        Identity of the public area (`pipelines.publication.area_identity`); "" in lines of versions that
        knew none, of releases that were never public, and once the area was declared lost.
    accept : dict
        Limits on disclosure that a steward accepted to be exceeded: name -> reason, and by whom.
    by, note : str
        Who approved or rejected, and why; "" where nobody was asked. A note by nobody is that of retention.
    keep : int or None
        How many releases of the name stand once this one is published; None where all do.
    successive : str
        ``publish.successive``: whether a steward accepted other releases of its source beside it.
    ledger : str
        Place of the ledger that the evidence area shares with others; "" where it shares none.
    """

    event: Event
    release_id: str
    name: str
    at: str
    identity: dict[str, Any]
    public: str = ""
    accept: dict[str, str] = field(default_factory=dict)
    by: str = ""
    note: str = ""
    keep: int | None = None
    successive: str = "refuse"
    ledger: str = ""
    area: str = ""


class LedgerDamaged(FileDamaged):
    """The ledger holds a line that is none of ours; nothing can be published beside it."""


class Ledger:
    """What was published from an evidence area; appended to, never rewritten."""

    def __init__(self, areas: Areas) -> None:
        self._areas = areas

    def entries(self) -> list[Entry]:
        """All lines, oldest first; a last line that a crash cut off is not one.

        Raises
        ------
        LedgerDamaged
            Where another line cannot be read: what it said of a release must not be lost.
        """
        return entries_of(self._areas.evidence)

    def append(self, entry: Entry) -> None:
        """Add a line and make it durable, and all evidence with it; a line that was cut off makes room.

        The pages that say what was so before go first: killed here, there is no page that is not true.
        """
        _WRITTEN[entry.release_id] = self._areas
        for page in (self._areas.record(entry.release_id) / PAGE, self._areas.evidence / INDEX):
            page.unlink(missing_ok=True)
        descriptor = os.open(self._areas.ledger, os.O_RDWR | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
        with os.fdopen(descriptor, "ab+") as file:
            file.seek(0)
            whole = file.read()
            end = whole.rfind(b"\n") + 1
            if _entry(whole[end:]) is not None:
                file.write(b"\n")
            else:
                file.truncate(end)
            file.write(json.dumps(asdict(entry), sort_keys=True).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._areas.keep()

    def latest(self) -> dict[str, Entry]:
        """The last line of each release, in the order in which releases first appeared."""
        return {entry.release_id: entry for entry in self.entries()}

    def status(self, release_id: str) -> Entry | None:
        """The last line about a release, None where there is none."""
        return self.latest().get(release_id)

    def published(self, name: str | None = None) -> list[Entry]:
        """Releases published and not withdrawn since (of one name, or of all), oldest first."""
        alive: dict[str, Entry] = {}
        for entry in self.entries():
            if entry.event == "published":
                alive.pop(entry.release_id, None)  # one that was made again is as new as its last line
                alive[entry.release_id] = entry
            elif entry.event in ("abandoned", "withdrawing", "withdrawn"):
                alive.pop(entry.release_id, None)
        return [entry for entry in alive.values() if name is None or entry.name == name]

    def unfinished(self) -> list[Entry]:
        """Releases that a run was about to publish or to withdraw when it died."""
        return [entry for entry in self.latest().values() if entry.event in ("intended", "withdrawing")]

    def ever_published(self, name: str) -> list[str]:
        """Ids of all releases that readers may have seen under a name, withdrawn ones too."""
        seen = [
            entry.release_id
            for entry in self.entries()
            if entry.name == name and entry.event not in NEVER_PUBLIC
        ]
        return list(dict.fromkeys(seen))

    def pending(self, name: str | None = None) -> list[Entry]:
        """Releases that are staged and wait for approval (of one name, or of all), oldest first."""
        latest = self.latest().values()
        return [each for each in latest if each.event == "waiting" and name in (None, each.name)]

    def refuse_successive(self, name: str, release_id: str, accepted: bool) -> None:
        """Refuse a second, different release of a name: two releases can be differenced.

        Raises
        ------
        GateRefused
            Where another release of this name stands and no steward accepted a successive one, where
            the public area holds releases that this ledger does not know, or says are gone, or where
            another name is current there.
        """
        self._refuse_other_name(name)
        self._refuse_returned(release_id)
        standing = {entry.release_id for entry in self.published(name)}
        others = sorted((standing | self._unknown()) - {release_id})
        if others and not accepted:
            raise GateRefused(
                f"The name {name!r} already has {len(others)} release(s) made from another input, k, seed or "
                f"specification ({', '.join(others[:3])}{', ...' if len(others) > 3 else ''}). Two releases "
                "of the same records can be differenced. Withdraw the earlier one (microguard withdraw), or "
                'set publish.successive to "accept" if a steward has decided that both may stand.'
            )

    def refuse_unknown(self, release_id: str = "") -> None:
        """Refuse to go on with a series beside releases that this ledger does not know.

        Raises
        ------
        GateRefused
        """
        unknown = self._unknown() - {release_id}
        if unknown:
            raise GateRefused(
                f"The public area holds {len(unknown)} release(s) that the ledger does not know "
                f"({', '.join(sorted(unknown)[:3])}): the evidence area may have been restored from a "
                "back-up, or another one publishes here. Going on would fork the series. Restore the "
                "evidence area as it was after the last release, or remove what is not this series'."
            )

    def _unknown(self) -> set[str]:
        return set(self._areas.public.releases()) - {entry.release_id for entry in self.entries()}

    def _refuse_returned(self, release_id: str) -> None:
        """Refuse to publish beside withdrawn releases, which a back-up of the area can bring back."""
        gone = {entry.release_id for entry in self.latest().values() if entry.event in GONE} - {release_id}
        returned = sorted(gone & set(self._areas.public.releases()))
        if returned:
            folder = self._areas.record_place(returned[0])
            raise GateRefused(
                f"The public area holds {len(returned)} release(s) that the ledger says are withdrawn "
                f"({', '.join(returned[:3])}): the area was mounted again, or restored from a back-up. "
                f"Withdraw them again (microguard withdraw {folder}), then call this again."
            )

    def _refuse_other_name(self, name: str) -> None:
        """One current.json serves one name: another would take the readers of the first along."""
        for entry in self.published():
            if entry.name != name and self._areas.public.exists(entry.release_id):
                raise GateRefused(
                    f"The public area serves releases of another name, {entry.name!r}: its current.json can "
                    "follow one name only. Choose another publish.path for this one."
                )


def written_about() -> list[Entry]:
    """The last line of each release that this process wrote a line about, read from where it was written."""
    with suppress(OSError, MicroguardError):
        last = {release_id: Ledger(areas).status(release_id) for release_id, areas in list(_WRITTEN.items())}
        return [entry for entry in last.values() if entry is not None]
    return []


def entries_of(evidence: Path) -> list[Entry]:
    """The lines of the ledger in an evidence area, oldest first: see `Ledger.entries`."""
    ledger = evidence / LEDGER
    if not ledger.is_file():
        return []
    lines = ledger.read_bytes().split(b"\n")
    if _entry(lines[-1]) is None:
        lines.pop()
    return list(_parsed(lines))


def _entry(line: bytes) -> Entry | None:
    """The entry in a line; None where it holds none of ours."""
    try:
        return Entry(**json.loads(line))
    except (ValueError, TypeError):
        return None


def _parsed(lines: list[bytes]) -> Iterator[Entry]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            entry = _entry(line)
            if entry is None:
                raise LedgerDamaged(
                    f"Line {number} of the ledger cannot be read: it is damaged, or of a newer version of "
                    "microguard. What it says of a release must not be lost, so nothing is done beside it. "
                    "Restore the ledger of the evidence area from its back-up, or use the newer version."
                )
            yield entry


def public_area_of(entry: Entry, areas: Areas) -> Areas:
    """The areas that an entry speaks of: several public areas can share one evidence area."""
    if is_in(entry, areas.public):
        return areas
    return replace(areas, public=public_area(entry.public))


def is_in(entry: Entry, public: PublicArea) -> bool:
    """Whether an entry speaks of this place, also where its old path is a symbolic link to it now."""
    if entry.public in ("", public.name):
        return True
    return "://" not in entry.public and os.path.realpath(entry.public) == public.name
