"""The ledger of an evidence area: what was published under which name, and what was withdrawn.

Two releases made from the same records can be differenced; so a second one under the same name is
refused unless a steward has decided that both may stand.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import Any

from pipelines.publication.areas import Areas
from schemas.errors import GateRefused


@dataclass(frozen=True)
class Entry:
    """One line of the ledger."""

    event: str  # published | withdrawn
    release_id: str
    name: str
    at: str
    identity: dict[str, Any]


class Ledger:
    """What was published from an evidence area; appended to, never rewritten."""

    def __init__(self, areas: Areas) -> None:
        self._places = areas

    def entries(self) -> list[Entry]:
        """All lines, oldest first; a line cut off by a crash is not one."""
        if not self._places.ledger.is_file():
            return []
        found = []
        for line in self._places.ledger.read_text(encoding="utf-8").splitlines():
            try:
                found.append(Entry(**json.loads(line)))
            except (ValueError, TypeError):
                continue
        return found

    def append(self, entry: Entry) -> None:
        """Add a line and make it durable; a torn last line of an earlier crash is closed first."""
        with open(self._places.ledger, "ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write(json.dumps(asdict(entry), sort_keys=True).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def standing(self, name: str | None = None) -> list[Entry]:
        """Releases published and not withdrawn since (of one name, or of all), oldest first."""
        alive: dict[str, Entry] = {}
        for entry in self.entries():
            if entry.event == "published":
                alive.setdefault(entry.release_id, entry)
            else:
                alive.pop(entry.release_id, None)
        return [entry for entry in alive.values() if name is None or entry.name == name]

    def ever(self, name: str) -> list[str]:
        """Ids of all releases ever published under a name, withdrawn ones too."""
        ids = [
            entry.release_id for entry in self.entries() if entry.name == name and entry.event == "published"
        ]
        return list(dict.fromkeys(ids))

    def refuse_successive(self, name: str, release_id: str, accepted: bool) -> None:
        """Refuse a second, different release of a name: two releases can be differenced.

        Raises
        ------
        GateRefused
            Where another release of this name stands and no steward accepted a successive one, or
            where the public area holds releases that this ledger does not know.
        """
        standing = {entry.release_id for entry in self.standing(name)}
        known = {entry.release_id for entry in self.entries()}
        public = self._places.public
        strangers = (
            [folder.name for folder in public.glob("[!.]*") if (folder / "manifest.json").is_file()]
            if public.is_dir()
            else []
        )
        unknown = set(strangers) - known - {release_id}
        others = (standing - {release_id}) | unknown
        if others and not accepted:
            raise GateRefused(
                f"The name {name!r} already has {len(others)} release(s) made from another input, k, seed or "
                "specification. Two releases of the same records can be differenced. Withdraw the earlier "
                'one (microguard withdraw), or set publish.successive to "accept" if a steward has decided '
                "that both may stand."
            )
