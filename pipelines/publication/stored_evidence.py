"""An evidence area in an object store: a run works in a private copy on its machine, which the store keeps.

What a run has at hand stays local (scratch files, blocks already done); all else is kept with every line of
the ledger, so that a line never speaks of evidence that the store does not have.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from microguard.pipelines.engine.files import private_folder, write_atomically
from microguard.schemas.errors import SpecificationError

if TYPE_CHECKING:
    from microguard.pipelines.publication.storage.mirror import MirroredFolder

#: Names the folder that holds the private copies.
VARIABLE = "MICROGUARD_WORK_DIR"
#: In a private copy: the address that it is of.
ADDRESS = ".address"
WORK, STAGING, WAITING = ".work", "staging", "waiting.json"
_KEY = "key"


def address_of(place: str | Path) -> str | None:
    """The address of an evidence area; None of one in a folder that is no private copy."""
    if "://" in str(place):
        return str(place).rstrip("/")
    marker = Path(place) / ADDRESS
    return marker.read_text(encoding="utf-8") if marker.is_file() else None


def stored_evidence(address: str) -> MirroredFolder:
    """The evidence area at an address, with its private copy on this machine.

    Raises
    ------
    SpecificationError
        Where it cannot be reached, or no private copy can be made.
    """
    from microguard.pipelines.publication.storage.mirror import MirroredFolder
    from microguard.pipelines.publication.storage.storage import storage_at

    storage = storage_at(address, "evidence")
    folder = _copies() / hashlib.sha256(address.encode()).hexdigest()[:32]
    try:
        for each in (folder.parent, folder):
            private_folder(each)
        write_atomically(folder / ADDRESS, address)
    except OSError as error:
        raise SpecificationError(
            f"[publish] evidence is an object store, and no private copy of it can be made on this machine "
            f"({os.strerror(error.errno or 0)}). Name a folder that can be written in {VARIABLE}."
        ) from None
    if folder.stat().st_mode & 0o077:
        raise SpecificationError(
            "The private copy of [publish] evidence can be entered by others than its owner. Set the mode of "
            f"its folder to 0700, or name another one in {VARIABLE}."
        )
    return MirroredFolder(
        storage, folder, is_stored=lambda name: _is_stored(folder, name), is_shown=_is_shown
    )


def _copies() -> Path:
    named = os.environ.get(VARIABLE)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else cache / "microguard" / "evidence"


def _is_stored(folder: Path, name: str) -> bool:
    """All but hidden files and work; of work, what a release that waits for a person is made of."""
    first, *rest = name.split("/")
    if first == WORK and len(rest) > 2 and rest[1] == STAGING:
        return (folder / rest[0] / WAITING).is_file()
    return name != _KEY and not any(part.startswith(".") for part in (first, *rest))


def _is_shown(name: str) -> bool:
    """What people read: pages, and the evidence of each release; not the state of a series."""
    return name.endswith((".html", ".json", ".css", "blocks.parquet")) and not name.startswith(
        ("series/", ".")
    )
