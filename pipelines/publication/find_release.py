"""Find a release and its evidence from whatever a person names: a folder, an area, an id, a specification."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pipelines.publication.areas import Areas
from pipelines.publication.ledger import Ledger
from schemas.errors import SpecificationError

NEARBY_LEVELS = 3
QUALITY = "quality.json"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class FoundRelease:
    """A release by id, with the areas it belongs to; the evidence area where it could be found."""

    release_id: str
    public: Path
    evidence: Path | None

    @property
    def folder(self) -> Path:
        """The public folder of the release."""
        return self.public / self.release_id

    def areas(self) -> Areas:
        """Both areas.

        Raises
        ------
        SpecificationError
            Where the evidence area was not found.
        """
        if self.evidence is None:
            raise SpecificationError(
                "The evidence area of this release was not found near it. Name the release by its folder in "
                "the evidence area, or by its specification file."
            )
        return Areas(self.public, self.evidence)


def find_release(named: str) -> FoundRelease:
    """The release that an argument means.

    Parameters
    ----------
    named : str
        A release folder in the public area or in the evidence area, a public area (its current
        release), or a specification file (its current release).

    Raises
    ------
    SpecificationError
        Where it means no release.
    """
    path = Path(named)
    if path.suffix == ".toml" and path.is_file():
        return _of_specification(path)
    if (path / MANIFEST).is_file():
        public = path.resolve()
        return FoundRelease(public.name, public.parent, _evidence_near(public.parent, public.name))
    if (path / QUALITY).is_file():
        folder = path.resolve()
        quality = json.loads((folder / QUALITY).read_text(encoding="utf-8"))
        return FoundRelease(folder.name, Path(quality["release"]["public_area"]), folder.parent)
    if (path / "current.json").is_file():
        public = path.resolve()
        release_id = _current(public)
        return FoundRelease(release_id, public, _evidence_near(public, release_id))
    raise SpecificationError(
        f"{named!r} is no release: expected a release folder (with its {MANIFEST} or {QUALITY}), a public "
        "area with a current.json, or a specification file."
    )


def _of_specification(path: Path) -> FoundRelease:
    from schemas.specification.read import read_specification

    specification = read_specification(path)
    public = Path(specification.public_area)
    if not (public / "current.json").is_file():
        raise SpecificationError(
            "Nothing is published from this specification now: there is no current.json."
        )
    return FoundRelease(_current(public), public, Path(specification.evidence_area))


def _current(public: Path) -> str:
    return str(json.loads((public / "current.json").read_text(encoding="utf-8"))["release_id"])


def _evidence_near(public: Path, release_id: str) -> Path | None:
    """The evidence area whose ledger knows the release, sought in the folders around the public area."""
    for root in public.parents[:NEARBY_LEVELS]:
        for pattern in ("ledger.jsonl", "*/ledger.jsonl", "*/*/ledger.jsonl"):
            for ledger in sorted(root.glob(pattern)):
                try:
                    areas = Areas(public, ledger.parent)
                except SpecificationError:  # inside the public area: no evidence area of ours
                    continue
                if any(entry.release_id == release_id for entry in Ledger(areas).entries()):
                    return ledger.parent
    return None
