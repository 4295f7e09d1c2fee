"""An evidence area in an object store: a run works in a private local copy, which is mirrored to the store.

Scratch files and finished blocks of a run stay local. All other files are stored together with each line of
the ledger, so that no line refers to evidence that is missing in the store.
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

#: Environment variable that names the folder of the private copies.
VARIABLE = "MICROGUARD_WORK_DIR"
#: File of a private copy with the address of its evidence area.
ADDRESS = ".address"
WORK, STAGING, WAITING = ".work", "staging", "waiting.json"
_KEY = "key"


def address_of(place: str | Path) -> str | None:
    """Return the address of an evidence area; None for a folder that is not a private copy."""
    if "://" in str(place):
        return str(place).rstrip("/")
    marker = Path(place) / ADDRESS
    return marker.read_text(encoding="utf-8") if marker.is_file() else None


def stored_evidence(address: str) -> MirroredFolder:
    """Return the evidence area at an address, with its private copy on this machine.

    Raises
    ------
    SpecificationError
        If the store cannot be reached, or no private copy can be made.
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
            "[publish] evidence: expected a folder on this machine for the private copy of the object "
            f"store, found that it cannot be created ({os.strerror(error.errno or 0)}). Name a folder that "
            f"can be written in {VARIABLE}."
        ) from None
    if folder.stat().st_mode & 0o077:
        raise SpecificationError(
            "The private copy of [publish] evidence: expected mode 0700, found a folder that users other "
            f"than its owner can enter. Set its mode to 0700, or name another folder in {VARIABLE}."
        )
    return MirroredFolder(
        storage, folder, is_stored=lambda name: _is_stored(folder, name), is_shown=_is_shown
    )


def _copies() -> Path:
    named = os.environ.get(VARIABLE)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else cache / "microguard" / "evidence"


def _is_stored(folder: Path, name: str) -> bool:
    """Return whether a file is mirrored: no hidden files, and work files only of a pending release."""
    first, *rest = name.split("/")
    if first == WORK and len(rest) > 2 and rest[1] == STAGING:
        return (folder / rest[0] / WAITING).is_file()
    return name != _KEY and not any(part.startswith(".") for part in (first, *rest))


def _is_shown(name: str) -> bool:
    """Return whether human readers need a file: pages and evidence of releases, not the state of a series."""
    return name.endswith((".html", ".json", ".css", "blocks.parquet")) and not name.startswith(
        ("series/", ".")
    )
