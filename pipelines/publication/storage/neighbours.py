"""Refuse places in an object store that are inside or above an area of another specification.

`schemas.specification.consistency` compares folders in the same way: evidence and ledgers must not be among
releases, and releases must not be among evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from microguard.pipelines.publication.storage.faults import StoreDenied
from microguard.pipelines.publication.storage.mirror import STATE
from microguard.pipelines.publication.storage.storage import Key, storage_at
from microguard.schemas.errors import SpecificationError
from microguard.schemas.specification.consistency import CURRENT
from microguard.schemas.specification.model import Specification

_RELEASE = re.compile(r"[0-9a-f]{32}")
#: Errors for a place that these credentials may not read, or that does not exist.
_UNSEEN = (FileNotFoundError, PermissionError, StoreDenied, SpecificationError)


def refuse_neighbours(specification: Specification) -> None:
    """Refuse places in object stores that are inside or above an area of another specification.

    A place that the credentials may not read counts as free.

    Raises
    ------
    SpecificationError
    StoreFailed
        If a store does not answer.
    """
    public, evidence, ledger = (
        specification.public_area,
        specification.evidence_area,
        specification.shared_ledger,
    )
    if _in_store(public) and any(_has(each, STATE) for each in (*_upwards(public), *_below(public))):
        raise SpecificationError(
            f"[publish] path = {specification.publish.path!r}: expected a place outside every evidence area "
            f"that contains no evidence area, found a {STATE} in it, above it or below it. Choose another "
            "place."
        )
    keys: tuple[tuple[Key, str | None], ...] = (("evidence", evidence), ("ledger", ledger))
    for key, place in keys:
        if place and _in_store(place) and any(_has(each, CURRENT, key) for each in _upwards(place)):
            raise SpecificationError(
                f"[publish] {key} = {getattr(specification.publish, key)!r}: expected a place outside every "
                "public area, found releases in it or above it. Choose another place."
            )


def _in_store(place: str) -> bool:
    return "://" in place


def _upwards(address: str) -> Iterator[str]:
    """Return an address and all addresses above it, up to the bucket."""
    scheme, _, path = address.rstrip("/").partition("://")
    parts = path.split("/")
    for depth in range(len(parts), 0, -1):
        yield f"{scheme}://{'/'.join(parts[:depth])}"


def _below(address: str, levels: int = 2) -> Iterator[str]:
    """Return the addresses up to `levels` below an address; leave out releases, which are numerous."""
    if levels == 0:
        return
    try:
        names = storage_at(address).prefixes()
    except _UNSEEN:
        return
    for name in names:
        if not _RELEASE.fullmatch(name):
            inside = f"{address.rstrip('/')}/{name}"
            yield inside
            yield from _below(inside, levels - 1)


def _has(address: str, name: str, key: Key = "path") -> bool:
    try:
        return storage_at(address, key).exists(name)
    except _UNSEEN:
        return False
