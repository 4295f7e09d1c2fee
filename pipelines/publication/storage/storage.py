"""Storage: named files below one place, in a folder or in an object store.

Public area, shared ledger, staging area and evidence area use this protocol. To add a kind of place, write
one class in a module of its own and add a row to `_ROWS`; ``tests/contract/storage`` tests that the class
obeys the laws below.

Laws
----
- A file is written whole or not at all, and is durable once the call returns.
- Of several writers of different contents to one name, `put_if_absent` succeeds for exactly one, and
  `replace` only for the one whose version is still current. A write of content that is already stored
  succeeds, because it may repeat a write whose response was lost.
- `list_files` names exactly the files that were put and not deleted.
- A tree appears with its last file and disappears with its first: readers who check for that file never see a
  part of a tree.
- The lock of a process that died is released.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal, Protocol, cast

#: Keys of ``[publish]`` that name a place, with the name of each place in messages.
Key = Literal["path", "evidence", "ledger"]
PLACES: dict[Key, str] = {"path": "public area", "evidence": "evidence area", "ledger": "shared ledger"}


@dataclass(frozen=True)
class Content:
    """Small file: its bytes, and a version that changes if and only if the bytes change."""

    content: bytes
    version: str


class Storage(Protocol):
    """Files of one place; their names are relative to the place (``a/b.json``).

    Every method raises OSError or `StoreFailed` if the storage does not answer.

    Attributes
    ----------
    name : str
        Absolute path or address.
    folder : Path or None
        The folder, if this machine reaches the files by paths; Spark and the table formats then use paths.
    is_private : bool
        Whether a file can be kept from everybody but its owner: only then may a key be stored here.
    """

    @property
    def name(self) -> str: ...
    @property
    def folder(self) -> Path | None: ...
    @property
    def is_private(self) -> bool: ...

    def require_writable(self) -> None:
        """Refuse a place that cannot be written, or that cannot compare versions.

        Raises
        ------
        SpecificationError
        """

    def make(self) -> None:
        """Create the place if it does not exist."""

    def get(self, name: str) -> Content | None:
        """Read a small file; return None if it does not exist."""
        ...

    def exists(self, name: str) -> bool:
        """Return whether a file of this name exists."""
        ...

    def put(self, name: str, content: bytes | memoryview | Path) -> None:
        """Write a file from its bytes or from a local copy; an existing file of this name is replaced."""

    def put_if_absent(self, name: str, content: bytes) -> bool:
        """Write a file unless the name exists; return whether the file has this content afterwards."""
        ...

    def replace(self, name: str, content: bytes, version: str | None) -> str:
        """Replace a given version of a file (None: the file must not exist); return the new version.

        Raises
        ------
        VersionChanged
            If the current version is a different one with different content.
        """
        ...

    def delete(self, name: str) -> None:
        """Delete a file if it exists."""

    def list_files(self, prefix: str = "") -> list[str]:
        """Return the names of all files below a prefix (``a/b``), sorted."""
        ...

    def prefixes(self) -> list[str]:
        """Return the sorted first parts of the names of all files in folders, without hidden ones."""
        ...

    def checksum(self, name: str) -> tuple[str, int]:
        """Read a file; return its SHA-256 (hexadecimal) and its size in bytes.

        Raises
        ------
        FileNotFoundError
        """
        ...

    def download(self, name: str, target: Path) -> None:
        """Write the content of a file to a local path.

        Raises
        ------
        FileNotFoundError
        """

    def put_tree(
        self, name: str, source: Path, checksums: Mapping[str, str], last: str, content: bytes
    ) -> None:
        """Copy the files of a local folder to an empty prefix, verify each copy, then write the file `last`.

        Parameters
        ----------
        checksums : mapping of file name to str
            SHA-256 of the files to copy.
        last : str
            File with which the tree appears.
        content : bytes
            Content of `last`.

        Raises
        ------
        ContentChanged
            If a copied file does not have its checksum.
        AreaTaken
            If another run took the lock over, or wrote `last`.
        """

    def remove_tree(self, name: str, first: str) -> None:
        """Delete everything below a prefix; the file `first` is deleted first."""

    def local_tree(self, name: str) -> AbstractContextManager[Path]:
        """Return a local folder with the files of a tree; it exists while the context is active."""
        ...

    def lock(self, *, wait: bool = True) -> AbstractContextManager[None]:
        """Lock the place against all other processes and machines that write to it.

        Raises
        ------
        BlockingIOError
            If another process holds the lock and `wait` is false.
        """
        ...

    def require_lock(self) -> None:
        """Refuse to continue unless this object still holds the lock.

        Raises
        ------
        AreaTaken
        """


#: Module and class by the scheme of an address; "" denotes a path, None any other scheme.
_ROWS = {
    "": ("folder", "FolderStorage"),
    None: ("object_store", "ObjectStorage"),
}


def storage_at(place: str | Path, key: Key = "path") -> Storage:
    """Return the storage at the path or address that a key of ``[publish]`` names.

    Raises
    ------
    SpecificationError
        If the storage cannot be reached.
    """
    scheme, separator, _ = str(place).partition("://")
    module, name = _ROWS.get(scheme if separator else "", _ROWS[None])
    return cast(Storage, getattr(import_module(f"{__package__}.{module}"), name)(place, key))
