"""Which public area is at a place: its identity, compared by every call that asserts something about it.

A path or an address does not say which area is behind it: the folder may not be mounted, may have been moved,
or may be a copy. The area has an identity file (`IDENTITY`), written once and before the first line of the
ledger that names it. Areas of versions that knew no identity get one as soon as a run holds the lock and sees
a release there that the ledger says stands: release ids are keyed hashes, which only this area, or a copy of
it, can have. An identity file that is torn is written again by the same proof, one that is gone is not.
"""

from __future__ import annotations

import secrets

from microguard.pipelines.engine.files import FileDamaged
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.ledger import GONE, NEVER_PUBLIC, Entry, Ledger, is_in
from microguard.pipelines.publication.public_area import IDENTITY
from microguard.schemas.errors import MicroguardError


class AreaNotThere(MicroguardError):
    """The public area that the ledger knows is not at its place; nothing can be said of its releases."""

    exit_code = 1


def known_area(areas: Areas) -> str | None:
    """Compare the public area with the one that the ledger knows at its place.

    Returns
    -------
    str or None
        Its identity; None where it has none that can be read, and may get one: nothing was published there
        yet, or the releases of an earlier version are there.

    Raises
    ------
    AreaNotThere
        Where the area of the ledger is not mounted, was moved, or is another one.
    FileDamaged
        Where the identity file cannot be read, and nothing else tells which area this is.
    """
    entries = _entries(areas)
    here = [each for each in entries if is_in(each, areas.public)]
    expected, damage, found = _expected(here), None, None
    try:
        found = areas.public.identity()
    except FileDamaged as error:
        damage = error
    ever = {each.area for each in here} - {""}
    if found in ({expected} if expected else ever):  # one that was declared lost may come back
        return found
    elsewhere = {each.area: each.public for each in entries if not is_in(each, areas.public)}
    if found in elsewhere and found not in ever:
        raise _elsewhere(areas, elsewhere[found])
    standing = _standing(here)
    if expected and not damage:
        raise _not_there(areas, standing, found, expected)
    lost = not expected and bool(ever)
    if (standing or (damage and not lost)) and not any(areas.public.exists(each) for each in standing):
        raise damage or _not_there(areas, standing, found, expected)
    return found


def require_area(areas: Areas) -> str:
    """The identity of the public area, which is the one that the ledger knows, or one it knows nothing of.

    Raises
    ------
    AreaNotThere
    """
    found = known_area(areas)
    if found is None:
        raise _not_there(areas, [], None, "")
    return found


def begin_area(areas: Areas) -> None:
    """Give the public area an identity where it has none yet; to be called with the evidence area locked.

    Raises
    ------
    AreaNotThere
    """
    if known_area(areas) is None:
        here = [each for each in _entries(areas) if is_in(each, areas.public)]
        areas.public.begin(_expected(here) or secrets.token_hex(16))


def settle_area(areas: Areas) -> None:
    """Compare the public area, and give one of an earlier version its identity.

    To be called with the evidence area locked.

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
    """Look whether a release is gone, in the area that it is said to be gone from.

    Raises
    ------
    AreaNotThere
    MicroguardError
        Where readers can still find it.
    """
    require_area(areas)
    if areas.public.exists(release_id) or areas.public.current() == release_id:
        raise MicroguardError(
            f"Release {release_id} is still in the public area after it was removed. Look at who else writes "
            "there, and call this again."
        )


def _entries(areas: Areas) -> list[Entry]:
    """The lines of the ledger about releases that were in a public area, oldest first."""
    return [each for each in Ledger(areas).entries() if each.event not in NEVER_PUBLIC]


def _expected(here: list[Entry]) -> str:
    """The identity that the newest line about this place names; "" where none does, or it is lost."""
    return here[-1].area if here else ""


def _standing(here: list[Entry]) -> list[str]:
    """Ids of the releases that the ledger says are at this place."""
    latest = {each.release_id: each.event for each in here}
    return [release_id for release_id, event in latest.items() if event in ("published", "withdrawing")]


def _not_there(areas: Areas, standing: list[str], found: str | None, expected: str) -> AreaNotThere:
    what = "another public area" if found is not None else f"no {IDENTITY} of it"
    holds = f", with {len(standing)} release(s) that stand" if standing else ""
    lacks = found is None and expected
    file = f' If its {IDENTITY} alone is lost, put {{"area": "{expected}"}} there.' if lacks else ""
    named = areas.record_place(standing[-1]) if standing else "SPEC"
    return AreaNotThere(
        f"The public area {areas.public.name}: expected that of the ledger{holds}, found {what}. It is "
        "not mounted, or was moved. Nothing can be said of its releases. Mount it at this place and call "
        f"this again. If it was moved, leave a symbolic link to it here.{file} If it is lost for good, say "
        f"so: microguard withdraw {named} --lost."
    )


def _elsewhere(areas: Areas, place: str) -> AreaNotThere:
    return AreaNotThere(
        f"The public area {areas.public.name}: expected an area of its own, found the identity of {place}, "
        "where the ledger knows it: this is a copy, or the area was moved. Nothing was changed. If it was "
        f"moved, leave a symbolic link to it at {place}. Delete a copy by hand, or at least its {IDENTITY}."
    )
