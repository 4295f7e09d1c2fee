"""Errors of a storage (folder or object store)."""

from __future__ import annotations

from microguard.schemas.errors import MicroguardError


class AreaTaken(MicroguardError):
    """Raised if another run took over the lock of a place; this run withdraws what it was publishing."""

    exit_code = 1


class StoreFailed(MicroguardError):
    """Raised if an object store did not respond, or refused a request."""

    exit_code = 1


class StoreDenied(StoreFailed):
    """Raised if an object store denies access to the requested object with these credentials."""


class StoreDamaged(MicroguardError):
    """Raised if the content of a storage differs from what was written; nothing is published then."""

    exit_code = 1


class VersionChanged(Exception):
    """Raised if a file cannot be replaced, because its current version is not the version that was read."""


class ContentChanged(Exception):
    """Raised if a copied file does not have the checksum that was verified before."""
