"""Compare the identity of the public area at a place with the identity in the ledger.

A path or an address does not prove which area is there: the folder may not be mounted, may have been moved,
or may be a copy. Each area therefore has an identity file (`IDENTITY`), which is written once, before the
first line of the ledger that names it. An area of an earlier version has no identity. It gets one when a run
with the lock finds a published release of the ledger there: release ids are keyed hashes, which only this
area or a copy of it can have. On the same evidence a damaged identity file is written again, but a missing
one is not.
"""

from __future__ import annotations

import secrets

from microguard.pipelines.engine.files import FileDamaged
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.ledger import GONE, NEVER_PUBLIC, Entry, Ledger, is_in
from microguard.pipelines.publication.public_area import IDENTITY
from microguard.schemas.errors import MicroguardError


class AreaNotThere(MicroguardError):
    """The ledger's public area is missing at its place, so the state of its releases is unknown."""

    exit_code = 1


def known_area(areas: Areas) -> str | None:
    """Compare the public area with the area that the ledger has for its place.

    Returns
    -------
    str or None
        The identity of the area. None if it has no readable identity and may get one, because nothing was
        published there yet or the releases of an earlier version are there.

    Raises
    ------
    AreaNotThere
        If the area of the ledger is not mounted, was moved, or was replaced by another area.
    FileDamaged
        If the identity file cannot be read and no release proves which area this is.
    """
    entries = _entries(areas)
    here = [each for each in entries if is_in(each, areas.public)]
    expected, damage, found = _expected(here), None, None
    try:
        found = areas.public.identity()
    except FileDamaged as error:
        damage = error
    ever = {each.area for each in here} - {""}
    if found in ({expected} if expected else ever):  # an area that was declared lost may have been recovered
        return found
    elsewhere = {each.area: each.public for each in entries if not is_in(each, areas.public)}
    if found in elsewhere and found not in ever:
        raise _elsewhere(areas, elsewhere[found])
    published = _published(here)
    if expected and not damage:
        raise _not_there(areas, published, found, expected)
    lost = not expected and bool(ever)
    if (published or (damage and not lost)) and not any(areas.public.exists(each) for each in published):
        raise damage or _not_there(areas, published, found, expected)
    return found


def require_area(areas: Areas) -> str:
    """Return the identity of the public area: that in the ledger, or a new one.

    Raises
    ------
    AreaNotThere
    """
    found = known_area(areas)
    if found is None:
        raise _not_there(areas, [], None, "")
    return found


def begin_area(areas: Areas) -> None:
    """Give the public area an identity if it has none; call this with the evidence area locked.

    Raises
    ------
    AreaNotThere
    """
    if known_area(areas) is None:
        here = [each for each in _entries(areas) if is_in(each, areas.public)]
        areas.public.begin(_expected(here) or secrets.token_hex(16))


def settle_area(areas: Areas) -> None:
    """Compare the public area with the ledger, and give an area of an earlier version its identity.

    Call this with the evidence area locked.

    Raises
    ------
    AreaNotThere
    """
    latest = {each.release_id: each.event for each in _entries(areas) if is_in(each, areas.public)}
    if not set(latest.values()) <= GONE:
        begin_area(areas)
    else:
        known_area(areas)


def require_gone(release_id: str, areas: Areas) -> None:
    """Raise an error unless a release is missing from its public area.

    Raises
    ------
    AreaNotThere
    MicroguardError
        If readers can still find the release.
    """
    require_area(areas)
    if areas.public.exists(release_id) or areas.public.current() == release_id:
        raise MicroguardError(
            f"Release {release_id}: expected no files in the public area after its removal, found some. "
            "Find out which other program writes there, and call this again."
        )


def _entries(areas: Areas) -> list[Entry]:
    """Return the lines of the ledger about releases that were in a public area, oldest first."""
    return [each for each in Ledger(areas).entries() if each.event not in NEVER_PUBLIC]


def _expected(here: list[Entry]) -> str:
    """Return the identity in the newest line about this place; "" if there is none or the area is lost."""
    return here[-1].area if here else ""


def _published(here: list[Entry]) -> list[str]:
    """Return the ids of the releases that are at this place according to the ledger."""
    latest = {each.release_id: each.event for each in here}
    return [release_id for release_id, event in latest.items() if event in ("published", "withdrawing")]


def _not_there(areas: Areas, published: list[str], found: str | None, expected: str) -> AreaNotThere:
    what = "another public area" if found is not None else f"no {IDENTITY} of it"
    holds = f", with {len(published)} published release(s)" if published else ""
    lacks = found is None and expected
    file = f' If only its {IDENTITY} is lost, write {{"area": "{expected}"}} there.' if lacks else ""
    named = areas.record_place(published[-1]) if published else "SPEC"
    return AreaNotThere(
        f"The public area {areas.public.name}: expected that of the ledger{holds}, found {what}. It is not "
        "mounted, or was moved, so that the state of its releases is unknown. Mount it at this place and "
        f"call this again. If it was moved, create a symbolic link to it here.{file} If it is permanently "
        f"lost, record the loss: microguard withdraw {named} --lost."
    )


def _elsewhere(areas: Areas, place: str) -> AreaNotThere:
    return AreaNotThere(
        f"The public area {areas.public.name}: expected an area with its own identity, found the identity "
        f"of {place}, where the ledger has this area: this is a copy, or the area was moved. Nothing was "
        f"changed. If it was moved, create a symbolic link to it at {place}. If it is a copy, delete it, or "
        f"its {IDENTITY}."
    )
