"""Search for a release and its evidence by a folder, an area, an address or a specification file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from glob import glob
from pathlib import Path
from typing import TypeVar

from microguard.pipelines.engine.files import parse_json
from microguard.pipelines.publication.area_identity import known_area
from microguard.pipelines.publication.areas import LEDGER, QUALITY, Areas
from microguard.pipelines.publication.ledger import Ledger, LedgerDamaged, is_in
from microguard.pipelines.publication.public_area import CURRENT, MANIFEST, PublicArea, public_area
from microguard.schemas.errors import SpecificationError

NEARBY_LEVELS = 3
T = TypeVar("T")


@dataclass(frozen=True)
class FoundRelease:
    """A release with its id, its public area, and its evidence area if it is known.

    Attributes
    ----------
    release_id : str
    public : PublicArea
    evidence : str or None
    as_current : bool
        Whether the user named an area or a specification instead of the release itself.
    """

    release_id: str
    public: PublicArea
    evidence: str | None
    as_current: bool = False

    def areas(self) -> Areas:
        """Return both areas of the release.

        Raises
        ------
        SpecificationError
            If the evidence area was not found.
        """
        if self.evidence is None:
            raise SpecificationError(
                f"Release {self.release_id}: expected its evidence area near the public area, found none. "
                "Name the release by its folder in the evidence area, or by its specification file."
            )
        return replace(Areas.from_places(self.public.name, self.evidence), public=self.public)


def find_release(named: str, *, gone: bool = False) -> FoundRelease:
    """Return the release that an argument of a command names.

    Parameters
    ----------
    named : str
        A release in the public area (its folder or address) or in the evidence area, a public area (its
        current release), or a specification file (its current release).
    gone : bool
        Whether a missing folder of the public area names the release that was there, and an area without a
        current release names the release whose withdrawal was killed there.

    Raises
    ------
    SpecificationError
        If the argument names no release.
    AreaNotThere
        If the argument names the current release of an area that is missing at its place.
    FileDamaged
    """
    release = _at_address(named) if "://" in named else _at_path(Path(named), gone)
    if release is None:
        raise SpecificationError(
            f"{named!r} is no release: expected a release folder (with its {MANIFEST} or {QUALITY}), a "
            f"public area with a {CURRENT}, or a specification file; found none of them. Check the path."
        )
    return release


def areas_named(named: str) -> Areas:
    """Return the areas of a specification or of a release; the public area may not exist.

    Raises
    ------
    SpecificationError
    """
    if Path(named).suffix == ".toml" and Path(named).is_file():
        from microguard.schemas.specification.read import read_specification

        specification = read_specification(Path(named))
        return Areas.from_places(specification.public_area, specification.evidence_area)
    return find_release(named, gone=True).areas()


def _at_path(path: Path, gone: bool) -> FoundRelease | None:
    if path.suffix == ".toml" and path.is_file():
        return _of_specification(path, gone)
    if (path / MANIFEST).is_file():
        public = path.resolve()
        return _in_folder(public.name, public.parent)
    if (path / QUALITY).is_file():
        folder = path.resolve()
        area = _public_area_in(folder.name, (folder / QUALITY).read_bytes())
        return FoundRelease(folder.name, area, str(folder.parent))
    current = public_area(path.resolve()).current()
    if current is not None:
        return replace(_in_folder(current, path.resolve()), as_current=True)
    return _gone(path) if gone else None


def _gone(path: Path) -> FoundRelease | None:
    """Return the release that a nearby ledger records at this missing folder, or records as partly withdrawn
    there.
    """
    place = path.resolve()
    if not path.exists():
        with suppress(LedgerDamaged):  # `_first_near` raises this if it finds nothing
            release = _in_folder(place.name, place.parent)
            if release.evidence is not None:
                return release
    return _first_near(place, _going_from)


def _going_from(areas: Areas) -> FoundRelease | None:
    """Return the newest release whose withdrawal was interrupted by a kill.

    Raises
    ------
    AreaNotThere
    """
    known_area(areas)
    going = half_withdrawn(Ledger(areas), areas.public)
    evidence = str(areas.evidence) if areas.mirror is None else areas.mirror.address
    return FoundRelease(going[-1], areas.public, evidence, as_current=True) if going else None


def half_withdrawn(ledger: Ledger, public: PublicArea) -> list[str]:
    """Return the ids of the releases of an area whose withdrawal was interrupted by a kill."""
    return [
        each.release_id for each in ledger.unfinished() if each.event == "withdrawing" and is_in(each, public)
    ]


def _at_address(address: str) -> FoundRelease | None:
    """Return a release in an object store, given its own address, that of its area, or that of its
    evidence.
    """
    from microguard.pipelines.publication.storage.storage import storage_at

    area = public_area(address)
    current = area.current()
    if current is not None:
        return FoundRelease(current, area, None, as_current=True)
    above, _, release_id = address.rstrip("/").rpartition("/")
    if above.endswith("/"):
        return None
    if public_area(above).exists(release_id):
        return FoundRelease(release_id, public_area(above), None)
    quality = storage_at(above, "evidence").get(f"{release_id}/{QUALITY}")
    if quality is None:
        return None
    return FoundRelease(release_id, _public_area_in(release_id, quality.content), above)


def _public_area_in(release_id: str, quality: bytes) -> PublicArea:
    """Return the public area that the evidence of a release names."""
    what, remedy = (
        f"{QUALITY} of release {release_id}",
        "Restore the evidence of the release from its back-up.",
    )
    return public_area(str(dict(parse_json(quality, what, remedy, "release")["release"])["public_area"]))


def _of_specification(path: Path, gone: bool) -> FoundRelease:
    from microguard.schemas.specification.read import read_specification

    specification = read_specification(path)
    public = public_area(specification.public_area)
    current = public.current()
    if current is not None:
        return FoundRelease(current, public, specification.evidence_area, as_current=True)
    areas = Areas.from_places(specification.public_area, specification.evidence_area)
    going = _going_from(areas)
    if going is None or not gone:
        raise SpecificationError(
            f"{path}: expected a published release of this specification, found no {CURRENT}, so nothing is "
            "published from it now. Run its job first (microguard protect)."
        )
    return going


def _in_folder(release_id: str, public: Path) -> FoundRelease:
    return FoundRelease(release_id, public_area(public), _evidence_near(public, release_id))


def _evidence_near(public: Path, release_id: str) -> str | None:
    """Return the evidence area, in a folder around the public area, whose ledger contains the release."""
    return _first_near(public, lambda areas: str(areas.evidence) if _knows(areas, release_id) else None)


def _knows(areas: Areas, release_id: str) -> bool:
    return Ledger(areas).status(release_id) is not None


def _first_near(public: Path, find: Callable[[Areas], T | None]) -> T | None:
    """Apply a function to each evidence area near a public area; return the first result that is not None.

    Raises
    ------
    LedgerDamaged
        If there is no result, and a ledger cannot be read.
    """
    damage = None
    for areas in _areas_near(public):
        try:
            result = find(areas)
        except LedgerDamaged as error:  # the ledger may belong to another public area, so it is skipped
            damage = error
        else:
            if result is not None:
                return result
    if damage is not None:
        raise damage
    return None


def _areas_near(public: Path) -> Iterator[Areas]:
    """Return the public area paired with each evidence area in the folders around it.

    Other processes may remove folders there meanwhile, which would make `Path.glob` fail.
    """
    for root in public.parents[:NEARBY_LEVELS]:
        for pattern in (LEDGER, f"*/{LEDGER}", f"*/*/{LEDGER}"):
            found = glob(pattern, root_dir=root, include_hidden=True)
            for ledger in sorted(root / path for path in found):
                # a folder inside the public area cannot be an evidence area
                with suppress(SpecificationError):
                    yield Areas.from_places(public, ledger.parent)
