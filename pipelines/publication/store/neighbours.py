"""Whether a place in an object store lies among those of other specifications, as folders are compared by
`schemas.specification.consistency`: evidence and ledgers among releases, releases among evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import obstore
from microguard.pipelines.publication.store.connection import asked, connected
from microguard.pipelines.publication.store.stored_folder import STATE
from microguard.schemas.errors import SpecificationError
from microguard.schemas.specification.consistency import CURRENT
from microguard.schemas.specification.model import Specification
from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

_RELEASE = re.compile(r"[0-9a-f]{32}")
#: Nothing is there, or nothing that these credentials may read.
_UNSEEN = (
    FileNotFoundError,
    PermissionError,
    PermissionDeniedError,
    UnauthenticatedError,
    SpecificationError,
)


def refuse_neighbours(specification: Specification) -> None:
    """Refuse places in object stores that lie in, or around, an area of another specification.

    What the credentials may not read is nobody's that can be seen here.

    Raises
    ------
    SpecificationError
    StoreFailed
        Where a store does not answer.
    """
    public, evidence, ledger = (
        specification.public_area,
        specification.evidence_area,
        specification.shared_ledger,
    )
    if _in_store(public) and any(_has(each, STATE) for each in (*_upwards(public), *_below(public))):
        raise SpecificationError(
            f"[publish] path: found {specification.publish.path!r}, allowed: a place apart from every "
            f"evidence area: a place above or below it, or it, has a {STATE}."
        )
    for key, place in (("evidence", evidence), ("ledger", ledger)):
        if place is not None and _in_store(place) and any(_has(each, CURRENT) for each in _upwards(place)):
            raise SpecificationError(
                f"[publish] {key}: found {getattr(specification.publish, key)!r}, allowed: a place outside "
                "every public area: it, or a place above it, has releases."
            )


def _in_store(place: str) -> bool:
    return "://" in place


def _upwards(address: str) -> Iterator[str]:
    """An address and all above it, down to the bucket."""
    scheme, _, path = address.rstrip("/").partition("://")
    parts = path.split("/")
    for depth in range(len(parts), 0, -1):
        yield f"{scheme}://{'/'.join(parts[:depth])}"


def _below(address: str, levels: int = 2) -> Iterator[str]:
    """Addresses so far below one, but of releases, which are many."""
    if levels == 0:
        return
    with asked("public area"):
        try:
            prefixes = obstore.list_with_delimiter(connected(address))["common_prefixes"]
        except _UNSEEN:
            return
    for name in sorted(str(prefix).rstrip("/") for prefix in prefixes):
        if not _RELEASE.fullmatch(name):
            inside = f"{address.rstrip('/')}/{name}"
            yield inside
            yield from _below(inside, levels - 1)


def _has(address: str, name: str) -> bool:
    with asked("areas"):
        try:
            obstore.head(connected(address), name)
        except _UNSEEN:
            return False
    return True
