"""Secret key of release ids and source fingerprints.

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
    """Return the key for a place in an object store; the key itself is never stored there.

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
            "store, in which the key is never stored; found none. Set the variable to the same file for "
            "all users of the place."
        )
    return key_of(path, public)


def key_of(path: Path, public: Path | None) -> bytes:
    """Return the key in a file outside every public area; if there is no file, create it.

    Raises
    ------
    SpecificationError
    """
    inside = public is not None and public.resolve() in path.resolve().parents
    if inside or among_releases(os.path.realpath(path)):
        raise SpecificationError(
            f"{KEY_VARIABLE}: expected a file outside every public area, found one inside the public area "
            "of a specification. Choose another file."
        )
    try:
        # not created if it is missing, because the variable may contain a typing error
        if path != key_file():
            private_folder(path.parent)
        key = key_at(path)
    except OSError as error:
        raise SpecificationError(
            "The key file: expected a file that this user can read or create, found one that allows "
            f"neither ({os.strerror(error.errno or 0)}). Make it readable, or name another one in "
            f"{KEY_VARIABLE}."
        ) from error
    if len(key) < KEY_BYTES:
        raise SpecificationError(
            f"The key file: found {len(key)} bytes, expected at least {KEY_BYTES} (256 bits). Remove the "
            f"file so that a new key is created, or name another file in {KEY_VARIABLE}."
        )
    return key


def key_at(path: Path) -> bytes:
    """Return the key in a file; if there is none, create the file in one step.

    Raises
    ------
    SpecificationError
        If users other than the owner can read the file.
    """
    create_once(path, secrets.token_hex(KEY_BYTES), PRIVATE_FILE)
    key = path.read_bytes().strip()
    if path.stat().st_mode & 0o077:
        raise SpecificationError(
            "The key file: expected mode 0600, found a mode that lets other users read it. Anyone who "
            "knows the key can test guesses about the input. Set its mode to 0600, or name another file in "
            f"{KEY_VARIABLE}."
        )
    return key


def key_name(key: bytes) -> str:
    """Return a hash that distinguishes keys without disclosing them."""
    return hmac.new(key, b"name of the key of sketches", hashlib.sha256).hexdigest()[:16]
