"""Verb ``withdraw``: remove a release from the public area, and record this in the ledger."""

from __future__ import annotations

from dataclasses import replace

from microguard.pipelines.engine.command_result import CommandResult, look_again, now
from microguard.pipelines.engine.files import FileDamaged
from microguard.pipelines.publication.area_identity import AreaNotThere, begin_area, known_area, require_gone
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.find_release import (
    FoundRelease,
    areas_named,
    find_release,
    half_withdrawn,
)
from microguard.pipelines.publication.ledger import GONE, NEVER_PUBLIC, Entry, Ledger, is_in
from microguard.pipelines.publication.public_area import PublicArea
from microguard.pipelines.publication.withdrawal import withdraw_release
from microguard.pipelines.rebuild_report import at_work, rebuild_reports
from microguard.schemas.errors import SpecificationError

#: Note in the ledger about releases of a public area that was declared lost.
LOST = "the public area was declared lost"


def withdraw(named: str, *, lost: bool = False) -> CommandResult:
    """Remove a release from the public area and from the history of its table, and record the withdrawal.

    If the release was current, the previous public release becomes current. A call after a kill finishes the
    same withdrawal and no other. A call for a withdrawn release checks that the release is removed.

    Parameters
    ----------
    named : str
        A release folder, a public area (its current release), or a specification file.
    lost : bool
        Whether the public area of the release is lost for good; all its releases are recorded as withdrawn.

    Raises
    ------
    SpecificationError
        If the ledger has no such release, or has it in another area, or the evidence area is not found.
    AreaNotThere
        If the public area is not the one in the ledger; nothing was withdrawn.
    """
    if lost:
        place = areas_named(named)
        return look_again(lambda: _declare_lost(place), lambda: _lost(place) if _is_lost(place) else None)
    release = find_release(named, gone=True)
    areas = release.areas()
    meant, before = _meant(release, Ledger(areas)), _served(areas.public)

    def act() -> CommandResult:
        with at_work(areas):
            status = Ledger(areas).status(meant)
            gone = status is not None and status.event in GONE and not _is_seen(meant, areas)
            if gone and _is_lost(areas):
                return _lost(areas)
            _withdraw(meant, areas)
            successor = areas.public.current()
            rebuild_reports(areas, [meant])
        return _answer(meant, areas, before, successor)

    def look() -> CommandResult | None:
        with at_work(areas):
            status = Ledger(areas).status(meant)
            if status is None or status.event not in GONE:
                return None
            require_gone(meant, areas)
            return _answer(meant, areas, before, areas.public.current())

    return look_again(act, look)


def _withdraw(meant: str, areas: Areas) -> None:
    status = Ledger(areas).status(meant)
    if status is not None and not is_in(status, areas.public):
        raise SpecificationError(
            f"According to the ledger, this release is in another public area, {status.public}: this is a "
            "copy, or the area was moved. Nothing was withdrawn. Name the release there, or by its folder "
            "in the evidence area, and delete copies by hand."
        )
    returned = _is_seen(meant, areas)
    if status is None or not (returned or status.event in {"published", *GONE}):
        raise SpecificationError(
            "The ledger contains no published release with this id: nothing was withdrawn. `microguard "
            "history SPEC` lists the releases of a specification."
        )
    if returned:
        # the area is of an earlier version, or its identity file is damaged; it is the right area if it
        # contains the release
        begin_area(areas)
    if status.event == "published" or returned:
        with areas.public.lock():
            withdraw_release(status, areas)
    else:
        require_gone(meant, areas)


def _is_seen(release_id: str, areas: Areas) -> bool:
    """Return whether a release is visible in the public area, without reading the ledger."""
    return areas.public.exists(release_id) or areas.public.current() == release_id


def _answer(meant: str, areas: Areas, before: str | None, successor: str | None) -> CommandResult:
    was_current = meant == before
    text = f"Release {meant} is withdrawn: it was removed from the public area" + (
        "" if not was_current else ", and there is no current release now" if successor is None
        else f", and release {successor}, the previous one, is current again"
    )  # fmt: skip
    kept = "" if areas.public.folder is not None else ", and so are versions of objects that the store keeps"
    content = {"release_id": meant, "was_current": was_current, "current": successor}
    return CommandResult(f"{text}. Copies made by readers cannot be withdrawn{kept}.", content)


def _declare_lost(areas: Areas) -> CommandResult:
    """Record all releases of a lost public area as withdrawn, so that a new area may begin at its place.

    Raises
    ------
    SpecificationError
        If the ledger has no such area, or the area is at its place.
    """
    with areas.lock():
        if _is_there(areas):
            if _is_lost(areas):
                return _lost(areas)
            raise SpecificationError(
                "--lost: expected a public area that does not exist at its place, found "
                f"{areas.public.name}, which exists or is not in the ledger. Nothing was changed. Run this "
                "without --lost."
            )
        latest = {each.release_id: each for each in _here(areas)}.values()
        there = [each for each in latest if each.event not in GONE]
        for each in there or list(latest)[-1:]:
            Ledger(areas).append(replace(each, event="withdrawn", at=now(), by="", note=LOST, area=""))
        rebuild_reports(areas, [each.release_id for each in there])
    return _lost(areas)


def _here(areas: Areas) -> list[Entry]:
    """Return the lines of the ledger about releases of this public area, oldest first."""
    entries = Ledger(areas).entries()
    return [each for each in entries if each.event not in NEVER_PUBLIC and is_in(each, areas.public)]


def _is_there(areas: Areas) -> bool:
    """Return whether the public area at the place may be the one in the ledger."""
    try:
        known_area(areas)
    except (AreaNotThere, FileDamaged):
        return False
    return True


def _is_lost(areas: Areas) -> bool:
    """Return whether the public area was declared lost, and no other area is at its place."""
    return any(each.note == LOST for each in _here(areas)[-1:]) and known_area(areas) is None


def _lost(areas: Areas) -> CommandResult:
    ids = list(dict.fromkeys(each.release_id for each in _here(areas) if each.note == LOST))
    text = (
        f"The public area {areas.public.name} is recorded as lost, and {len(ids)} release(s) in it as "
        "withdrawn, without a check of the area. If it appears again, withdraw them again. Another public "
        "area may begin at this place. Copies made by readers cannot be withdrawn."
    )
    return CommandResult(text, {"lost": areas.public.name, "release_ids": ids})


def _served(public: PublicArea) -> str | None:
    """Return the current release; None if current.json is unreadable until a run that holds the lock repairs
    it.
    """
    try:
        return public.current()
    except FileDamaged:
        return None


def _meant(release: FoundRelease, ledger: Ledger) -> str:
    """Return the id of the release to withdraw; for an area, the newest release that is not withdrawn.

    A killed call may already have made the previous release current, which must not be withdrawn.
    """
    if not release.as_current:
        return release.release_id
    ids = {release.release_id, *half_withdrawn(ledger, release.public)}
    published = [each.release_id for each in ledger.entries() if each.event == "published"]
    return [release.release_id, *(each for each in published if each in ids)][-1]
