"""Errors of a storage."""

from __future__ import annotations

from microguard.schemas.errors import MicroguardError


class AreaTaken(MicroguardError):
    """Another run took the lock of a place over; what this run was about to publish is withdrawn."""

    exit_code = 1


class StoreFailed(MicroguardError):
    """An object store did not answer, or refused a request."""

    exit_code = 1


class StoreDenied(StoreFailed):
    """An object store does not let these credentials see what was requested."""


class StoreDamaged(MicroguardError):
    """A storage does not hold what was written to it; nothing can be published."""

    exit_code = 1


class VersionChanged(Exception):
    """A file was to be replaced, and its current version is not the one that was read."""


class ContentChanged(Exception):
    """A file that was copied does not have the checksum under which it was verified."""
