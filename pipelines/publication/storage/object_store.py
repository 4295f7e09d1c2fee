"""Storage in an object store: conditional writes replace renames, and a lease replaces a file lock.

Credentials and endpoints come from the environment, in the variables that the cloud's own tools use.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import obstore
from microguard.pipelines.engine.files import in_threads
from microguard.pipelines.publication.storage.faults import (
    AreaTaken,
    ContentChanged,
    StoreDenied,
    StoreFailed,
    VersionChanged,
)
from microguard.pipelines.publication.storage.lease import Lease
from microguard.pipelines.publication.storage.storage import PLACES, Content, Key
from microguard.schemas.errors import SpecificationError
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import ObjectStore, from_url

#: Number of bytes that are read at a time.
CHUNK = 8 * 2**20
#: Number of bytes in a part of a large object, and maximum number of parts that S3 accepts.
SENT, MOST_PARTS = 5 * 2**20, 10_000
P = ParamSpec("P")
R = TypeVar("R")


def connected(address: str, key: Key = "path") -> ObjectStore:
    """Return a client of the store at an address; names are relative to the path of the address.

    Raises
    ------
    SpecificationError
    """
    try:
        return from_url(address)
    except (BaseError, ValueError, OSError) as error:
        raise SpecificationError(
            f"[publish] {key}: expected the address of an object store, found one that cannot be reached "
            f"({type(error).__name__}). Check the address, and region, endpoint and credentials in the "
            "environment."
        ) from None


def _named(method: Callable[Concatenate[ObjectStorage, P], R]) -> Callable[Concatenate[ObjectStorage, P], R]:
    """Translate errors of the library into errors that name the place."""

    @wraps(method)
    def named(self: ObjectStorage, *arguments: P.args, **options: P.kwargs) -> R:
        try:
            return method(self, *arguments, **options)
        except BaseError as error:
            denied = isinstance(error, (PermissionDeniedError, UnauthenticatedError))
            raise (StoreDenied if denied else StoreFailed)(
                f"The object store of the {PLACES[self._key]} failed ({type(error).__name__}), after several "
                "tries. Check its state, the network and the credentials, and run the command again: it "
                "first finishes or undoes the interrupted work."
            ) from None

    return named


class ObjectStorage:
    """Storage below an address of an object store; see `Storage`. A pickled copy connects once per process.

    Parameters
    ----------
    address : str
    key : str
        Key of ``[publish]`` that names the address.
    """

    folder, is_private = None, False

    def __init__(self, address: str | Path, key: Key = "path") -> None:
        self.name = str(address).rstrip("/")
        self._key: Key = key
        self._store = connected(self.name, key)
        self._lease = Lease(self)

    def __reduce__(self) -> tuple[Callable[[str, Key], ObjectStorage], tuple[str, Key]]:
        return _of_process, (self.name, self._key)

    def require_writable(self) -> None:
        """Refuse a store that denies writing, or that does not compare versions in conditional writes."""
        try:
            compares = _compares_versions(self._store, f".probe-{secrets.token_hex(8)}")
        except (BaseError, OSError) as error:
            raise SpecificationError(
                f"[publish] {self._key}: expected an object store that can be written, found one that cannot "
                f"({type(error).__name__}). Check the address, and region, endpoint, credentials and rights "
                "in the environment."
            ) from None
        if not compares:
            raise SpecificationError(
                f"[publish] {self._key}: expected an object store with conditional writes, found one that "
                "replaces an object of any version: two runs could publish at once. Choose another store."
            )

    def make(self) -> None:
        """Do nothing: a prefix exists once an object has it."""

    @_named
    def get(self, name: str) -> Content | None:
        """Fetch an object; its version is its entity tag."""
        try:
            answer = obstore.get(self._store, name)
        except FileNotFoundError:
            return None
        return Content(bytes(answer.bytes()), str(answer.meta["e_tag"]))

    @_named
    def exists(self, name: str) -> bool:
        """Return whether an object exists, by a request for its metadata."""
        try:
            obstore.head(self._store, name)
        except FileNotFoundError:
            return False
        return True

    @_named
    def put(self, name: str, content: bytes | memoryview | Path) -> None:
        """Put an object; a large object is sent in parts."""
        size = content.stat().st_size if isinstance(content, Path) else len(content)
        obstore.put(self._store, name, content, chunk_size=max(SENT, math.ceil(size / MOST_PARTS)))

    def put_if_absent(self, name: str, content: bytes) -> bool:
        """Put an object if there is none."""
        try:
            self.replace(name, content, None)
        except VersionChanged:
            return False
        return True

    @_named
    def replace(self, name: str, content: bytes, version: str | None) -> str:
        """Put an object on the condition that its entity tag has not changed.

        If a put is refused and the store already has the content, this is a repeated put whose first response
        was lost.
        """
        how: Any = "create" if version is None else {"e_tag": version}
        try:
            return str(obstore.put(self._store, name, content, mode=how)["e_tag"])
        except (AlreadyExistsError, PreconditionError):
            found = self.get(name)
            if found is None or found.content != content:
                raise VersionChanged(name) from None
            return found.version

    @_named
    def delete(self, name: str) -> None:
        """Delete an object."""
        with suppress(FileNotFoundError):
            obstore.delete(self._store, name)

    @_named
    def list_files(self, prefix: str = "") -> list[str]:
        """List the objects below a prefix."""
        batches = obstore.list(self._store, prefix=f"{prefix}/" if prefix else None)
        return sorted(str(each["path"]) for batch in batches for each in batch)

    @_named
    def prefixes(self) -> list[str]:
        """List the prefixes of the first level."""
        try:
            prefixes = obstore.list_with_delimiter(self._store)["common_prefixes"]
        except FileNotFoundError:
            return []
        return sorted(name for each in prefixes if not (name := str(each).rstrip("/")).startswith("."))

    @_named
    def checksum(self, name: str) -> tuple[str, int]:
        """Read an object back, piece by piece."""
        digest, size = hashlib.sha256(), 0
        for chunk in obstore.get(self._store, name).stream(min_chunk_size=CHUNK):
            digest.update(chunk)
            size += len(chunk)
        return digest.hexdigest(), size

    @_named
    def download(self, name: str, target: Path) -> None:
        """Download an object to a local file, piece by piece."""
        chunks = obstore.get(self._store, name).stream(min_chunk_size=CHUNK)
        with open(target, "wb") as file:
            for chunk in chunks:
                file.write(chunk)

    @_named
    def put_tree(
        self, name: str, source: Path, checksums: Mapping[str, str], last: str, content: bytes
    ) -> None:
        """Put every file and read it back, several at a time; then put `last` if it does not exist."""

        def put(file: str) -> None:
            if not (source / file).is_file():
                raise ContentChanged(file)
            self.require_lock()
            self.put(f"{name}/{file}", source / file)
            if self.checksum(f"{name}/{file}")[0] != checksums[file]:
                raise ContentChanged(file)

        in_threads(put, list(checksums))
        self.require_lock()
        if not self.put_if_absent(f"{name}/{last}", content):
            raise AreaTaken(
                f"{name}/{last}: expected no such file in the {PLACES[self._key]}, found the one of another "
                "run that put the same release. Call this again."
            )

    def remove_tree(self, name: str, first: str) -> None:
        """Delete `first`, then every other object below the prefix."""
        for each in sorted(self.list_files(name), key=lambda each: each != f"{name}/{first}"):
            self.delete(each)

    @contextmanager
    def local_tree(self, name: str) -> Iterator[Path]:
        """Download the tree to a private folder."""
        with tempfile.TemporaryDirectory(prefix="microguard-") as folder:

            def fetch(each: str) -> None:
                target = Path(folder) / each
                target.parent.mkdir(parents=True, exist_ok=True)
                self.download(each, target)

            in_threads(fetch, self.list_files(name))
            yield Path(folder) / name

    def lock(self, *, wait: bool = True) -> AbstractContextManager[None]:
        """Hold the lease of the store as the lock."""
        return self._lease.hold(wait=wait)

    def require_lock(self) -> None:
        """Renew the lease; the store refuses this if another run took the lease over."""
        self._lease.require()


@lru_cache(maxsize=4)
def _of_process(address: str, key: Key) -> ObjectStorage:
    """Return the storage of an address for this process, which keeps its connections open."""
    return ObjectStorage(address, key)


def _compares_versions(store: ObjectStore, probe: str) -> bool:
    """Return whether the store refuses to replace a version that is no longer current."""
    try:
        version = str(obstore.put(store, probe, b"1", mode="create")["e_tag"])
        obstore.put(store, probe, b"2", mode={"e_tag": version})
        obstore.put(store, probe, b"3", mode={"e_tag": version})
    except PreconditionError:
        return True
    except NotImplementedError:  # obstore raises this error for a store without conditional writes
        return False
    finally:
        with suppress(FileNotFoundError):
            obstore.delete(store, probe)
    return False
