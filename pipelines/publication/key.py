"""The secret key: it names releases, and hashes what is kept of their sources.

It is a file that only its owner can read, in the evidence area or wherever `KEY_VARIABLE` says. Nothing may
be safe only because the seed is unknown; whoever knows the key can test guesses about the input.
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
    """The file that the environment names, if it does."""
    named = os.environ.get(KEY_VARIABLE)
    return Path(expanded(named)) if named else None


def required_key(public: Path | None, place: str) -> bytes:
    """The key for a place in an object store: it never lies there.

    Parameters
    ----------
    public : Path or None
        The public area, where it is a folder.
    place : str
        Key of ``[publish]`` that names the object store.

    Raises
    ------
    SpecificationError
    """
    path = key_file()
    if path is None:
        raise SpecificationError(
            f"[publish] {place} is an object store, and the key does not lie in one: name its file in "
            f"{KEY_VARIABLE}, the same for all who share the place."
        )
    return key_of(path, public)


def key_of(path: Path, public: Path | None) -> bytes:
    """The key in a file outside of every public area; created where there is none yet.

    Raises
    ------
    SpecificationError
    """
    inside = public is not None and public.resolve() in path.resolve().parents
    if inside or among_releases(os.path.realpath(path)):
        raise SpecificationError(
            f"{KEY_VARIABLE} names a file inside the public area of a specification: choose another."
        )
    try:
        if path != key_file():  # a folder that the environment names is not made: it may be a slip
            private_folder(path.parent)
        key = key_at(path)
    except OSError as error:
        raise SpecificationError(
            f"The key file can be neither read nor created ({os.strerror(error.errno or 0)}). Make it "
            f"readable for the user who runs this, or name another one in {KEY_VARIABLE}."
        ) from error
    if len(key) < KEY_BYTES:
        raise SpecificationError(
            f"The key file holds {len(key)} bytes, expected at least {KEY_BYTES} (256 bits). Remove it "
            f"to have one created, or name another one in {KEY_VARIABLE}."
        )
    return key


def key_at(path: Path) -> bytes:
    """The key in a file, created whole or not at all where there is none yet.

    Raises
    ------
    SpecificationError
        Where others than the owner can read it: who knows the key can name releases from guesses.
    """
    create_once(path, secrets.token_hex(KEY_BYTES), PRIVATE_FILE)
    key = path.read_bytes().strip()
    if path.stat().st_mode & 0o077:
        raise SpecificationError(
            "The key file can be read by others than its owner. Whoever knows the key can test guesses about "
            f"the input: set its mode to 0600, or name another one in {KEY_VARIABLE}."
        )
    return key


def key_name(key: bytes) -> str:
    """What tells two keys apart without giving any away."""
    return hmac.new(key, b"name of the key of sketches", hashlib.sha256).hexdigest()[:16]
