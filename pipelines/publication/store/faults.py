"""What may go wrong with a place in an object store."""

from __future__ import annotations

from microguard.schemas.errors import MicroguardError


class AreaTaken(MicroguardError):
    """Another run took the place over; what this one was about to publish is taken back."""

    exit_code = 1


class StoreFailed(MicroguardError):
    """The store did not do what it was asked for."""

    exit_code = 1


class StoreDamaged(MicroguardError):
    """The store does not hold what was put there; nothing can be published beside it."""

    exit_code = 1
