"""The secret key of release ids and of source fingerprints.

The key is a file that only its owner can read, in the evidence area or at the path in `KEY_VARIABLE`. Anyone
who knows the key can test guesses about the input. No protection relies on the secrecy of the seed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from microguard.pipelines.engine.files import PRIVATE_FILE, create_once, private_folder
from microguard.schemas.errors import SpecificationError
from microguard.schemas.paths import expanded
from microguard.schemas.specification.consistency import among_releases

KEY_BYTES = 32
KEY_VARIABLE = "MICROGUARD_KEY_FILE"


def key_file() -> Path | None:
    """Return the key file that the environment variable names; None if the variable is not set."""
    named = os.environ.get(KEY_VARIABLE)
    return Path(expanded(named)) if named else None


def required_key(public: Path | None, place: str) -> bytes:
    """Return the key for a place in an object store; the store never contains the key itself.

    Parameters
    ----------
    public : Path or None
        The public area, if it is a folder.
    place : str
        Key of ``[publish]`` that names the object store.

    Raises
    ------
    SpecificationError
    """
    path = key_file()
    if path is None:
        raise SpecificationError(
            f"{KEY_VARIABLE}: expected the path of the key file, because [publish] {place} is an object "
            "store and never holds the key, found none. Set it to the same file for all who share the place."
        )
    return key_of(path, public)


def key_of(path: Path, public: Path | None) -> bytes:
    """Return the key in a file outside every public area; create the file if there is none.

    Raises
    ------
    SpecificationError
    """
    inside = public is not None and public.resolve() in path.resolve().parents
    if inside or among_releases(os.path.realpath(path)):
        raise SpecificationError(
            f"{KEY_VARIABLE}: expected a file outside every public area, found one inside the public area of "
            "a specification. Choose another file."
        )
    try:
        if path != key_file():  # not created if missing: the variable may have a typing error
            private_folder(path.parent)
        key = key_at(path)
    except OSError as error:
        raise SpecificationError(
            "The key file: expected a file that the user who runs this can read or create, found one that "
            f"can be neither read nor created ({os.strerror(error.errno or 0)}). Make it readable, or name "
            f"another one in {KEY_VARIABLE}."
        ) from error
    if len(key) < KEY_BYTES:
        raise SpecificationError(
            f"The key file: found {len(key)} bytes, expected at least {KEY_BYTES} (256 bits). Remove the "
            f"file to have one created, or name another one in {KEY_VARIABLE}."
        )
    return key


def key_at(path: Path) -> bytes:
    """Return the key in a file; create the file in one step if there is none.

    Raises
    ------
    SpecificationError
        If users other than the owner can read the file.
    """
    create_once(path, secrets.token_hex(KEY_BYTES), PRIVATE_FILE)
    key = path.read_bytes().strip()
    if path.stat().st_mode & 0o077:
        raise SpecificationError(
            "The key file: expected mode 0600, found one that users other than its owner can read. Anyone "
            "who knows the key can test guesses about the input. Set its mode to 0600, or name another one "
            f"in {KEY_VARIABLE}."
        )
    return key


def key_name(key: bytes) -> str:
    """Return a hash that distinguishes keys and does not disclose them."""
    return hmac.new(key, b"name of the key of sketches", hashlib.sha256).hexdigest()[:16]
