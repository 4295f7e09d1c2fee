"""The public area: where readers look, in a folder or in an object store.

A release is there whole or not at all, and one small file, ``current.json``, names the one to read. What is
asked of a place is in `PublicArea`; a new kind of place is a file beside this one and a line of
`public_area`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from microguard.pipelines.engine.files import damaged, parse_json
from microguard.schemas.errors import ProtectionFailed

MANIFEST = "manifest.json"
CURRENT = "current.json"
#: Says which area this is (`pipelines.publication.area_identity`): random, and nothing about key or input.
IDENTITY = ".area.json"
_IDENTITY = re.compile(r"[0-9a-f]{32}")


class PublicArea(Protocol):
    """Releases by id, and which of them is current.

    Attributes
    ----------
    name : str
        Absolute path or address, as the ledger keeps it.
    folder : Path or None
        The folder it is, if it is one: what the table formats need.
    """

    @property
    def name(self) -> str: ...
    @property
    def folder(self) -> Path | None: ...

    def require_writable(self) -> None:
        """Refuse a place that cannot be written, before hours of work are spent on it.

        Raises
        ------
        SpecificationError
        """

    def identity(self) -> str | None:
        """Which area this is, by its identity file; None where there is no such file.

        Raises
        ------
        FileDamaged
        """
        ...

    def begin(self, identity: str) -> None:
        """Make the place, and give it an identity where it has none; the first of two stays."""

    def lock(self) -> AbstractContextManager[None]:
        """Hold the area, which is there; waits for another run that is publishing there."""
        ...

    def place(self, release_id: str) -> str:
        """Where a release is, for those who read it."""
        ...

    def releases(self) -> list[str]:
        """Ids of the releases, whoever put them there."""
        ...

    def exists(self, release_id: str) -> bool:
        """Whether readers can see a release."""
        ...

    def is_whole(self, release_id: str) -> bool:
        """Whether a release has exactly the bytes that its manifest names."""
        ...

    def put(
        self, release_id: str, source: Path, checksums: Mapping[str, str], manifest: Mapping[str, Any]
    ) -> None:
        """Let a release appear, whole and durable, with its manifest; one that is there already stays.

        Parameters
        ----------
        source : Path
            Private folder with its files.
        checksums : mapping of file name to str
            SHA-256 under which they were verified.
        manifest : mapping
            Gets the checksums and sizes of all files.

        Raises
        ------
        ProtectionFailed
            Where a file that arrived is not the file that was verified.
        """

    def remove(self, release_id: str) -> None:
        """Take a release away, or what a killed run left of one.

        Raises
        ------
        OSError, MicroguardError
            Where something of it stays.
        """

    def current(self) -> str | None:
        """Id of the release that ``current.json`` names; None where there is none.

        Raises
        ------
        FileDamaged
        """
        ...

    def set_current(self, release_id: str | None) -> None:
        """Point the readers to a release, or to none, in one step.

        Raises
        ------
        AreaTaken
        """

    def reading(self, release_id: str) -> AbstractContextManager[Path]:
        """A folder with the files of a release, for as long as they are read."""
        ...


def public_area(place: str | Path) -> PublicArea:
    """The area at a path or an address."""
    if "://" in str(place):
        from microguard.pipelines.publication.public.object_store import ObjectStoreArea
        from microguard.pipelines.publication.store.connection import connected

        return ObjectStoreArea(str(place), connected(str(place)))
    from microguard.pipelines.publication.public.folder import FolderArea

    return FolderArea(Path(place))


def identity_of(content: bytes) -> str:
    """The identity in the content of an identity file.

    Raises
    ------
    FileDamaged
    """
    what = f"{IDENTITY} of the public area"
    remedy = (
        "Restore it from the back-up of the area. It is written again where the area has a release that "
        "the ledger knows."
    )
    identity = str(parse_json(content, what, remedy, "area")["area"])
    if not _IDENTITY.fullmatch(identity):
        raise damaged(what, remedy)
    return identity


def current_of(content: bytes) -> str:
    """The release that the content of a ``current.json`` names.

    Raises
    ------
    FileDamaged
    """
    remedy = (
        "Name the release by its own folder, or run the job again: whoever holds the lock writes the file "
        "anew where the ledger knows every release of the area. Else put back the one of the last release."
    )
    return str(parse_json(content, f"{CURRENT} of the public area", remedy, "release_id")["release_id"])


def not_what_was_staged() -> ProtectionFailed:
    """A file that is not the one that was verified."""
    return ProtectionFailed(
        "A file of the release changed after it was staged, or while it was copied to the public area. "
        "Nothing was published; look for a faulty disk or another writer, and call this again."
    )
