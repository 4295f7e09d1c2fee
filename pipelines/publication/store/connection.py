"""What all places in an object store share: how they are reached, tried and asked.

Credentials and endpoints are those of the environment, as the cloud's own tools read them.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import obstore
from microguard.pipelines.publication.store.faults import StoreFailed
from microguard.schemas.errors import SpecificationError
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import ObjectStore, from_url

#: Bytes that are read at a time.
CHUNK = 8 * 2**20


def connected(address: str, key: str = "path") -> ObjectStore:
    """The store at an address, everything below its path.

    Parameters
    ----------
    key : str
        Of ``[publish]``, which names the address.

    Raises
    ------
    SpecificationError
    """
    try:
        return from_url(address)
    except (BaseError, ValueError, OSError) as error:
        raise SpecificationError(
            f"[publish] {key} cannot be reached as an object store ({type(error).__name__}). Look at the "
            "address, and at region, endpoint and credentials in the environment."
        ) from None


def require_conditional_writes(store: ObjectStore, key: str = "path") -> None:
    """Refuse a store that does not let us write, or does not compare versions.

    Raises
    ------
    SpecificationError
    """
    try:
        compares = _compares_versions(store, f".probe-{secrets.token_hex(8)}")
    except (BaseError, OSError) as error:
        raise SpecificationError(
            f"[publish] {key} is an object store that cannot be written ({type(error).__name__}). Look at "
            "the address, and at region, endpoint, credentials and rights in the environment."
        ) from None
    if not compares:
        raise SpecificationError(
            f"[publish] {key} is an object store that puts an object whatever the version it replaces: two "
            "runs could publish at once. Choose a store with conditional writes."
        )


@contextmanager
def asked(place: str) -> Iterator[None]:
    """Say that the store failed in words of ours.

    Parameters
    ----------
    place : str
        What is kept in it.

    Raises
    ------
    StoreFailed
    """
    try:
        yield
    except BaseError as error:
        raise StoreFailed(
            f"The object store of the {place} failed ({type(error).__name__}), after it was asked "
            "several times. Look at its state, at the network and at credentials, and call this again: "
            "what is half done is finished or taken back first."
        ) from None


def create(store: ObjectStore, name: str, content: bytes) -> bool:
    """Put an object where there is none; whether it holds this content now.

    That it does although another was refused is the answer of a try whose first answer was lost.
    """
    try:
        obstore.put(store, name, content, mode="create")
    except AlreadyExistsError:
        return bytes(obstore.get(store, name).bytes()) == content
    return True


def checksum_of(store: ObjectStore, name: str) -> tuple[str, int]:
    """SHA-256, hexadecimal, and bytes of an object as the store gives it back."""
    digest, size = hashlib.sha256(), 0
    for chunk in obstore.get(store, name).stream(min_chunk_size=CHUNK):
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size


def content_of(address: str, name: str) -> bytes | None:
    """A small object below an address; None where there is none."""
    with asked("evidence area"):
        try:
            return bytes(obstore.get(connected(address, "evidence"), name).bytes())
        except FileNotFoundError:
            return None


def names(store: ObjectStore, prefix: str | None = None) -> list[str]:
    """Names of all objects below a prefix, sorted."""
    return sorted(str(each["path"]) for batch in obstore.list(store, prefix=prefix) for each in batch)


def _compares_versions(store: ObjectStore, probe: str) -> bool:
    """Whether the store refuses to replace another version than the one that is named."""
    version = str(obstore.put(store, probe, b"1", mode="create")["e_tag"])
    try:
        obstore.put(store, probe, b"2", mode={"e_tag": version})
        obstore.put(store, probe, b"3", mode={"e_tag": version})
    except PreconditionError:
        return True
    except NotImplementedError:  # what obstore raises for a store without conditional writes
        return False
    finally:
        obstore.delete(store, probe)
    return False
