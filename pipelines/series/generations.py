"""Generations: the sealed states of a series after each release, recoverable after a kill and never forked.

A generation is a folder ``<evidence>/series/<name>/<number>-<release_id>`` that is created by one rename.
``seal.json`` lists its files with their checksums and the hash of the previous seal. The ledger decides which
generation is the latest: a generation is valid once its release is published. If a run died between sealing
and publishing, its generation is made again. A generation that the ledger names may be missing, changed or
not linked to the previous seal. Then a back-up was restored in part, and the series is refused.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microguard.pipelines.engine.files import (
    checksum,
    private_folder,
    read_json,
    sync_folder,
    write_atomically,
)
from microguard.pipelines.publication.areas import Areas
from microguard.pipelines.publication.identity import SERIES
from microguard.pipelines.publication.ledger import Ledger
from microguard.schemas.errors import GateRefused

SEAL, PLAN, UNITS, POOLED = "seal.json", "plan.json", "units", "pooled"
CREATED_RECORDS, MOVED = "births", "moved"


@dataclass(frozen=True)
class Generation:
    """One sealed generation.

    Attributes
    ----------
    folder : Path
    number : int
        Counted from 1.
    release_id : str
    seal : str
        SHA-256 of ``seal.json``; the seal of the next generation contains it.
    counts : dict
        `UpdateCounts` of its update.
    """

    folder: Path
    number: int
    release_id: str
    seal: str
    counts: dict[str, Any]

    @property
    def units(self) -> Path:
        """Folder of the state of all units after reading the input, before classes were changed."""
        return self.folder / UNITS

    @property
    def pooled(self) -> Path:
        """Folder of the state of the units in the pool, after classes were created."""
        return self.folder / POOLED

    @property
    def created(self) -> Path:
        """Folder of the records whose classes the update created."""
        return self.folder / CREATED_RECORDS

    @property
    def moved(self) -> Path:
        """Folder of the classes that the update suppressed or republished."""
        return self.folder / MOVED

    def plan(self) -> dict[str, Any]:
        """Read the plan that was fixed when the series began."""
        what = f"{PLAN} of the series after release {self.release_id}"
        return read_json(self.folder / PLAN, what, "Restore the evidence area from its back-up.")


class Generations:
    """The generations of one series.

    Parameters
    ----------
    folder : Path
        ``<evidence>/series/<name>``.
    published : sequence of str
        Ids of the releases of the series in the order of their publication, withdrawn ones included, because
        readers may still have copies.
    """

    def __init__(self, folder: Path, published: Sequence[str]) -> None:
        self._folder = folder
        self._published = tuple(published)

    def all(self) -> list[Generation]:
        """Return the generations of all published releases, oldest first, after verifying every seal.

        Raises
        ------
        GateRefused
        """
        generations: list[Generation] = []
        before = ""
        for number, release_id in enumerate(self._published, start=1):
            generation = _read(self._path(number, release_id), number, release_id, before)
            generations.append(generation)
            before = generation.seal
        return generations

    def latest(self) -> Generation | None:
        """Return the latest generation after verifying the checksums of its files; None before the first
        release.

        Raises
        ------
        GateRefused
            If the state differs from the one in the ledger.
        """
        generations = self.all()
        if not generations:
            return None
        for generation in generations:
            _compare(generation, past=generation is not generations[-1])
        return generations[-1]

    def since_begun(self) -> list[Generation]:
        """Return the generations since the series last began, oldest first; classes before that are
        suppressed.
        """
        generations = self.all()
        begun = generations[-1].plan()["begun"] if generations else 1
        return generations[begun - 1 :]

    def pending(self, release_id: str) -> Path:
        """Create an empty folder for the next generation; remove the folders of killed runs."""
        private_folder(self._folder)
        for leftover in self._folder.iterdir():
            if leftover.name.split("-")[-1] not in self._published:
                shutil.rmtree(leftover)
        folder = self._folder / f".{release_id}"
        return private_folder(folder)

    def seal(self, release_id: str, counts: dict[str, Any]) -> Path:
        """Seal the pending folder; the generation is valid once its release is published."""
        pending, number = self._folder / f".{release_id}", len(self._published) + 1
        generations = self.all()
        files = {
            path.relative_to(pending).as_posix(): checksum(path)
            for path in sorted(pending.rglob("*"))
            if path.is_file() and not path.name.startswith((".", "_"))
        }
        content = {
            "number": number,
            "release_id": release_id,
            "previous": generations[-1].seal if generations else "",
            "counts": counts,
            "files": files,
        }
        write_atomically(pending / SEAL, json.dumps(content, indent=2, sort_keys=True))
        target = self._path(number, release_id)
        pending.rename(target)
        sync_folder(self._folder)
        return target

    def require_next(self, release_id: str) -> None:
        """Refuse to publish a pending release unless its generation is complete and follows the latest one.

        Raises
        ------
        GateRefused
        """
        before = self.latest()
        number, seal = (1, "") if before is None else (before.number + 1, before.seal)
        generation = _read(self._path(number, release_id), number, release_id, seal)
        _compare(generation, past=False)

    def forget(self, release_id: str) -> None:
        """Remove the generation of a release that was rejected."""
        for folder in self._folder.glob(f"*-{release_id}"):
            if release_id not in self._published:
                shutil.rmtree(folder)

    def _path(self, number: int, release_id: str) -> Path:
        return self._folder / f"{number:06d}-{release_id}"


def generations_of(areas: Areas, name: str) -> Generations:
    """Return the generations of the series with this name."""
    return Generations(areas.evidence / SERIES / name, releases_of_series(areas, name))


def releases_of_series(areas: Areas, name: str) -> list[str]:
    """Return the ids of the releases of a series that were ever published, in order."""
    entries = Ledger(areas).entries()
    updates = [e for e in entries if e.name == name and e.event == "published" and SERIES in e.identity]
    return list(dict.fromkeys(update.release_id for update in updates))


def _read(folder: Path, number: int, release_id: str, before: str) -> Generation:
    try:
        text = (folder / SEAL).read_bytes()
        content = json.loads(text)
        sealed = (content["number"], content["release_id"], content["previous"])
    except (OSError, ValueError, KeyError, TypeError):
        raise _restored(release_id) from None
    if sealed != (number, release_id, before):
        raise _restored(release_id)
    return Generation(folder, number, release_id, hashlib.sha256(text).hexdigest(), content["counts"])


def _compare(generation: Generation, *, past: bool) -> None:
    """Verify the checksums of files; for a past generation only of its new records and moved classes."""
    files = json.loads((generation.folder / SEAL).read_text(encoding="utf-8"))["files"]
    for name, expected in files.items():
        if past and not name.startswith((f"{CREATED_RECORDS}/", f"{MOVED}/")):
            continue
        path = generation.folder / name
        if not path.is_file() or checksum(path) != expected:
            raise _restored(generation.release_id)


def _restored(release_id: str) -> GateRefused:
    return GateRefused(
        f"The state of the series after release {release_id} is missing, was changed, or is of another run "
        "than the ledger states: the evidence area may have been restored from a back-up in part. "
        "Continuing from it would fork the series. Restore the whole evidence area to the state after that "
        "release."
    )
