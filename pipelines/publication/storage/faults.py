"""Errors of a storage."""

from __future__ import annotations

from microguard.schemas.errors import MicroguardError


class AreaTaken(MicroguardError):
    """Raised if another run took the lock of a place over; this run withdraws what it was publishing."""

    exit_code = 1


class StoreFailed(MicroguardError):
    """Raised if an object store did not answer, or refused a request."""

    exit_code = 1


class StoreDenied(StoreFailed):
    """Raised if an object store denies these credentials access to the requested object."""


class StoreDamaged(MicroguardError):
    """Raised if the content of a storage differs from what was written; nothing can be published."""

    exit_code = 1


class VersionChanged(Exception):
    """Raised if a file should be replaced, but its current version is not the version that was read."""


class ContentChanged(Exception):
    """Raised if a copied file does not have the checksum that was verified."""
