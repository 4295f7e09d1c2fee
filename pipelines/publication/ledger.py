"""The ledger of an evidence area: a write-ahead log of publications and withdrawals.

The difference of two releases made from the same records can disclose values. A second release under the same
name is therefore refused unless a steward has accepted both.

Each change of the public area has a line before it and a line after it: ``intended`` and ``published`` for a
publication, ``withdrawing`` and ``withdrawn`` for a withdrawal. A release that needs approval is ``waiting``
until it is intended or ``rejected``. A run that finds the first line of a pair without the second completes
the change.
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
#: Last events of releases that are not in the public area any more.
GONE: frozenset[Event] = frozenset({"withdrawn", "abandoned"})


#: Release id -> areas to whose ledger this process added a line about the release; read at a signal.
_WRITTEN: dict[str, Areas] = {}


@dataclass(frozen=True)
class Entry:
    """One line of the ledger.

    Attributes
    ----------
    event : str
        One of `Event`.
    release_id, name, at : str
    identity : dict
        What determines the content of the release (`pipelines.publication.identity`).
    public : str
        Path or address of the public area; "" in lines of the first version, in which each ledger had one
        area.
    area : str
        Identity of the public area (`pipelines.publication.area_identity`); "" in lines of versions without
        identities, of releases that were never public, and after the area was declared lost.
    accept : dict
        Limits on disclosure that a steward allowed to be exceeded: name -> reason and steward.
    by, note : str
        Who approved or rejected the release, and why; "" without approval. A note without a person comes from
        microguard itself, for example from retention.
    keep : int or None
        How many releases of the name stay published, this one included; None for all.
    successive : str
        ``publish.successive``: whether a steward accepted other releases of the same source.
    ledger : str
        Path or address of the shared ledger; "" without one.
    catalog, table : str
        Catalogue (address or name, without credentials) and table of the release; "" without one.
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
    catalog: str = ""
    table: str = ""


class LedgerDamaged(FileDamaged):
    """Raised if the ledger has a line that microguard did not write; until it is restored, nothing is
    published.
    """


class Ledger:
    """The lines of an evidence area's ledger: lines are appended and never rewritten."""

    def __init__(self, areas: Areas) -> None:
        self._areas = areas

    def entries(self) -> list[Entry]:
        """Return all lines, oldest first, except a last line that a crash left incomplete.

        Raises
        ------
        LedgerDamaged
            If another line cannot be read.
        """
        return entries_of(self._areas.evidence)

    def append(self, entry: Entry) -> None:
        """Append a line, replacing an incomplete last line, and make the ledger and all evidence durable.

        Pages that show the earlier state are removed first, so that a crash leaves no outdated page.
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
        """Return the last line of each release, in the order of the first lines."""
        return {entry.release_id: entry for entry in self.entries()}

    def status(self, release_id: str) -> Entry | None:
        """Return the last line about a release; None if there is none."""
        return self.latest().get(release_id)

    def published(self, name: str | None = None) -> list[Entry]:
        """Return the releases (of one name, or all) that are published and not withdrawn, oldest first."""
        alive: dict[str, Entry] = {}
        for entry in self.entries():
            if entry.event == "published":
                alive.pop(entry.release_id, None)  # published again: counts from its last line
                alive[entry.release_id] = entry
            elif entry.event in ("abandoned", "withdrawing", "withdrawn"):
                alive.pop(entry.release_id, None)
        return [entry for entry in alive.values() if name is None or entry.name == name]

    def unfinished(self) -> list[Entry]:
        """Return the releases for which a run died while it published or withdrew them."""
        return [entry for entry in self.latest().values() if entry.event in ("intended", "withdrawing")]

    def ever_published(self, name: str) -> list[str]:
        """Return the ids of all releases of a name that readers may have seen, withdrawn ones included."""
        seen = [
            entry.release_id
            for entry in self.entries()
            if entry.name == name and entry.event not in NEVER_PUBLIC
        ]
        return list(dict.fromkeys(seen))

    def pending(self, name: str | None = None) -> list[Entry]:
        """Return the releases (of one name, or all) that are pending approval, oldest first."""
        latest = self.latest().values()
        return [each for each in latest if each.event == "waiting" and name in (None, each.name)]

    def refuse_successive(self, name: str, release_id: str, accepted: bool) -> None:
        """Refuse a second, different release of a name, because the difference of two releases can disclose
        values.

        Raises
        ------
        GateRefused
            If another release of this name is published and no steward accepted both; if the public area has
            releases that the ledger does not know or has as withdrawn; or if its current release has another
            name.
        """
        self._refuse_other_name(name)
        self._refuse_returned(release_id)
        standing = {entry.release_id for entry in self.published(name)}
        others = sorted((standing | self._unknown()) - {release_id})
        if others and not accepted:
            shown = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
            raise GateRefused(
                f"[release] name = {name!r}: expected no other release of this name, found {len(others)} "
                f"release(s) made from another input, k, seed or specification ({shown}). Two releases of "
                "the same records can be differenced. Withdraw the earlier one (microguard withdraw), or "
                "set publish.successive to 'accept' if a steward has decided that both may remain published."
            )

    def refuse_unknown(self, release_id: str = "") -> None:
        """Refuse to continue a series if the public area has releases that this ledger does not know.

        Raises
        ------
        GateRefused
        """
        unknown = self._unknown() - {release_id}
        if unknown:
            raise GateRefused(
                f"The public area contains {len(unknown)} release(s) that the ledger does not know "
                f"({', '.join(sorted(unknown)[:3])}): the evidence area may have been restored from a "
                "back-up, or another one publishes here. Continuing would fork the series. Restore the "
                "evidence area to the state after the last release, or remove files of other series."
            )

    def _unknown(self) -> set[str]:
        return set(self._areas.public.releases()) - {entry.release_id for entry in self.entries()}

    def _refuse_returned(self, release_id: str) -> None:
        """Refuse to publish if withdrawn releases are visible again, for example restored from a back-up."""
        gone = {entry.release_id for entry in self.latest().values() if entry.event in GONE} - {release_id}
        returned = sorted(gone & set(self._areas.public.releases()))
        if returned:
            folder = self._areas.record_place(returned[0])
            raise GateRefused(
                f"The public area contains {len(returned)} release(s) that the ledger says are withdrawn "
                f"({', '.join(returned[:3])}): the area was mounted again, or restored from a back-up. "
                f"Withdraw them again (microguard withdraw {folder}), then call this again."
            )

    def _refuse_other_name(self, name: str) -> None:
        """Refuse a second name in one area: current.json would direct readers of the first name to it."""
        for entry in self.published():
            if entry.name != name and self._areas.public.exists(entry.release_id):
                raise GateRefused(
                    f"[publish] path: expected a public area of the name {name!r}, found one with releases "
                    f"of another name, {entry.name!r}. One current.json can refer to one name only. Choose "
                    "another publish.path."
                )


def written_about() -> list[Entry]:
    """Return the last line of each release about which this process added a line."""
    with suppress(OSError, MicroguardError):
        last = {release_id: Ledger(areas).status(release_id) for release_id, areas in list(_WRITTEN.items())}
        return [entry for entry in last.values() if entry is not None]
    return []


def entries_of(evidence: Path) -> list[Entry]:
    """Return the lines of the ledger in an evidence area, oldest first; see `Ledger.entries`."""
    ledger = evidence / LEDGER
    if not ledger.is_file():
        return []
    lines = ledger.read_bytes().split(b"\n")
    if _entry(lines[-1]) is None:
        lines.pop()
    return list(_parsed(lines))


def _entry(line: bytes) -> Entry | None:
    """Parse a line; return None if microguard did not write it."""
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
                    f"Line {number} of the ledger: expected a line that microguard wrote, found one that is "
                    "damaged, or of a newer version. It may describe a release, so the command stops. "
                    "Restore the ledger of the evidence area from its back-up, or use the newer version."
                )
            yield entry


def public_area_of(entry: Entry, areas: Areas) -> Areas:
    """Return the areas of an entry; several public areas can share one evidence area."""
    if is_in(entry, areas.public):
        return areas
    return replace(areas, public=public_area(entry.public))


def is_in(entry: Entry, public: PublicArea) -> bool:
    """Return whether an entry belongs to this public area, even if its path is now a symbolic link."""
    if entry.public in ("", public.name):
        return True
    return "://" not in entry.public and os.path.realpath(entry.public) == public.name
