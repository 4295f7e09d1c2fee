"""The areas in which a run may write: the public area and the evidence area.

Unverified data stays in the evidence area, in folders of mode 0700. The evidence area also has the key of the
release ids, the ledger and the lock, which only one run at a time can hold.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microguard.pipelines.engine.files import (
    PRIVATE_FILE,
    create_once,
    damaged,
    locked,
    private_folder,
    write_atomically,
)
from microguard.pipelines.engine.frames import exact_paths
from microguard.pipelines.publication.key import key_file, key_of, required_key
from microguard.pipelines.publication.public_area import MANIFEST, PublicArea, public_area
from microguard.pipelines.publication.staging.folder import FolderStagingArea
from microguard.pipelines.publication.staging.staging_area import StagingArea
from microguard.pipelines.publication.stored_evidence import WORK, address_of, stored_evidence
from microguard.schemas.errors import MicroguardError, SpecificationError
from microguard.schemas.specification.model import Specification
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from microguard.pipelines.publication.storage.mirror import MirroredFolder

#: File names in the folder of a release: evidence and page. File names in the area: the index page and the
#: ledger.
QUALITY, PAGE, INDEX, LEDGER = "quality.json", "report.html", "index.html", "ledger.jsonl"
MANIFEST_COPY = "published_manifest.json"
_SESSION, _INPUT = "session-", "input"
_TOKEN = re.compile(r"[0-9a-f]{32}")
_RUN = re.compile(rf"[0-9a-f]{{32}}|{_SESSION}\d+")


class AreaBusy(MicroguardError):
    """Raised if another run holds the lock of an area."""

    exit_code = 1


@dataclass(frozen=True)
class Areas:
    """The two areas of one specification.

    Attributes
    ----------
    public : PublicArea
        For readers: releases and ``current.json``.
    evidence : Path
        For the agency only: evidence of each release, ledger, key, work folders.
    mirror : MirroredFolder or None
        The storage, if the evidence area is an object store; `evidence` is then a private copy.
    """

    public: PublicArea
    evidence: Path
    mirror: MirroredFolder | None = None

    def __post_init__(self) -> None:
        evidence, public = self.evidence.resolve(), self.public.folder
        if public is not None and public.resolve() in (evidence, *evidence.parents):
            raise _inside_public()

    @classmethod
    def from_places(cls, public: str | Path, evidence: str | Path) -> Areas:
        """Return the areas at two places; if evidence is in an object store, update its private copy."""
        area, address = public_area(public), address_of(evidence)
        if address is None:
            return cls(area, Path(evidence))
        if f"{address}/".startswith(f"{area.name}/"):
            raise _inside_public()
        mirror = stored_evidence(address)
        with suppress(AreaBusy), hold(mirror.folder):  # else a run on this machine keeps the copy up to date
            mirror.fetch()
        return cls(area, mirror.folder, mirror)

    def record(self, release_id: str) -> Path:
        """Return the evidence folder of a release."""
        return self.evidence / release_id

    def record_place(self, release_id: str) -> str:
        """Return the path or address of the evidence of a release, for messages."""
        return str(self.record(release_id)) if self.mirror is None else f"{self.mirror.address}/{release_id}"

    def keep_manifest(self, release_id: str) -> None:
        """Copy the manifest of a release to its evidence: it has the checksums of all files but its own."""
        found = self.public.storage.get(f"{release_id}/{MANIFEST}")
        assert found is not None
        write_atomically(private_folder(self.record(release_id)) / MANIFEST_COPY, found.content, PRIVATE_FILE)

    def has_its_manifest(self, release_id: str) -> bool:
        """Return whether a release has the manifest of its publication; early evidence has no copy."""
        kept = self.record(release_id) / MANIFEST_COPY
        found = self.public.storage.get(f"{release_id}/{MANIFEST}")
        return not kept.is_file() or (found is not None and found.content == kept.read_bytes())

    @property
    def identity(self) -> str:
        """Return an identity that no other evidence area has, even with the same path on another machine."""
        if self.mirror is not None:
            return self.mirror.address
        path = private_folder(self.evidence) / "area"
        create_once(path, secrets.token_hex(16), PRIVATE_FILE)
        token = path.read_text(encoding="utf-8", errors="replace").strip()
        if not _TOKEN.fullmatch(token):
            raise damaged(
                "The file area of the evidence area", "Restore it from the back-up of the evidence area."
            )
        return f"{token} {self.evidence.resolve()}"

    @property
    def ledger(self) -> Path:
        """Return the path of the ledger, with one JSON object a line for each publication and withdrawal."""
        return self.evidence / LEDGER

    def work(self, release_id: str, purpose: str) -> Path:
        """Return a private work folder (``staging``, ``resume``, ``spark``) of a run; create it if missing.

        Raises
        ------
        SpecificationError
            If users other than the owner can enter an existing folder.
        """
        private_folder(self.evidence)
        for folder in (
            self.evidence / WORK,
            self.evidence / WORK / release_id,
            self.evidence / WORK / release_id / purpose,
        ):
            if private_folder(folder).stat().st_mode & 0o077:
                raise SpecificationError(
                    f"The folder {WORK} of the evidence area: expected mode 0700, found one that users "
                    "other than its owner can enter. It would contain records that are not protected yet. "
                    "Set its mode to 0700, or choose another [publish] evidence."
                )
        return folder

    def staging_area(self, release_id: str, purpose: str, folder: Path | None = None) -> StagingArea:
        """Return the staging area where the tasks of a run write and read unverified data.

        Parameters
        ----------
        folder : Path, optional
            Folder for the frames that are fetched; by default the private work folder of `purpose`.
        """
        folder = self.work(release_id, purpose) if folder is None else folder
        if self.mirror is None:
            return FolderStagingArea(folder)
        from microguard.pipelines.publication.staging.part_lists import PartListStagingArea

        return PartListStagingArea(self.mirror.storage, f"{WORK}/{release_id}/{purpose}", folder)

    def frame(self, spark: SparkSession, folders: Sequence[Path], schema: StructType) -> DataFrame:
        """Return a frame of the Parquet files in folders of the evidence area; tasks read the files."""
        if self.mirror is not None:
            from microguard.pipelines.publication.staging.part_lists import fetched

            parts = [part for folder in folders for part in self.mirror.parts(folder)]
            return fetched(spark, self.mirror.storage, parts, schema)
        return exact_paths(spark).schema(schema).parquet(*map(str, folders))

    def forget_work(self, release_id: str) -> None:
        """Remove the work folders and the staging areas of a run."""
        shutil.rmtree(self.evidence / WORK / release_id, ignore_errors=True)
        if self.mirror is not None:
            self.mirror.forget(f"{WORK}/{release_id}")

    @contextmanager
    def session(self) -> Iterator[Path]:
        """Create a private scratch folder and remove it when the run ends; call this with the lock held.

        Scratch folders of killed runs (spilled records, standard error of the JVM) are removed first. No
        other run is alive while this run holds the lock.
        """
        for name in self.unfinished():
            if name.startswith(_SESSION):
                self.forget_work(name)
        name = f"{_SESSION}{os.getpid()}"
        try:
            yield self.work(name, "spark")
        finally:
            self.forget_work(name)

    def forget_session(self) -> None:
        """Remove the files that this process wrote to its `session_staging` area."""
        self.forget_work(f"{_SESSION}{os.getpid()}")

    def session_staging(self) -> StagingArea:
        """Return a private staging area for the input; `forget_input` and `session` remove it."""
        return self.staging_area(f"{_SESSION}{os.getpid()}", _INPUT)

    def forget_input(self) -> None:
        """Remove the input from this process's staging area, whose scratch folder may still be in use."""
        session = f"{_SESSION}{os.getpid()}"
        self.forget_work(f"{session}/{_INPUT}")
        with suppress(OSError):  # the process has a scratch folder
            (self.evidence / WORK / session).rmdir()

    def unfinished(self) -> list[str]:
        """Return the release ids (or session names) that still have work folders, sorted."""
        work = self.evidence / WORK
        return sorted(entry.name for entry in work.iterdir()) if work.is_dir() else []

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the evidence area on this machine (see `hold`) and, in an object store, for all machines."""
        with ExitStack() as held:
            held.enter_context(hold(self.evidence))
            if self.mirror is not None:
                try:
                    held.enter_context(self.mirror.hold())
                except BlockingIOError:
                    raise _busy() from None
            yield

    def keep(self) -> None:
        """Make the content of the evidence area durable; call this before another write relies on it."""
        if self.mirror is not None:
            self.mirror.keep()

    def key(self) -> bytes:
        """Return the secret key of the release ids; create the key with mode 0600 if there is none."""
        if self.mirror is not None:
            return required_key(self.public.folder, "evidence")
        return key_of(key_file() or self.evidence / "key", self.public.folder)

    def release_id(self, identity: Mapping[str, Any]) -> str:
        """Return the id of a release: a keyed hash of its identity (32 hexadecimal digits)."""
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hmac.new(self.key(), text.encode(), hashlib.sha256).hexdigest()[:32]


def areas_of(specification: Specification) -> Areas:
    """Return the areas of a specification; they must be writable and overlap no other specification's areas.

    Raises
    ------
    SpecificationError
    """
    public, evidence = specification.public_area, specification.evidence_area
    if any("://" in place for place in (public, evidence, specification.shared_ledger or "")):
        from microguard.pipelines.publication.storage.neighbours import refuse_neighbours

        refuse_neighbours(specification)
    areas = Areas.from_places(public, evidence)
    areas.public.require_writable()
    if specification.catalog is not None and specification.catalog_table is not None:
        from microguard.pipelines.publication.formats.table_format import catalog_table

        catalog_table(specification.catalog, specification.catalog_table, areas.public).require()
    return areas


def is_work(folder: Path) -> bool:
    """Return whether a folder named `WORK` was made by microguard: private, with folders of runs only."""
    private = not folder.stat().st_mode & 0o077
    return private and all(_RUN.fullmatch(entry.name) for entry in folder.iterdir())


@contextmanager
def hold(area: Path) -> Iterator[None]:
    """Lock an area; the system releases the lock when the process dies.

    Raises
    ------
    AreaBusy
        If another run holds the lock.
    """
    with ExitStack() as held:
        try:
            held.enter_context(locked(private_folder(area), wait=False))
        except BlockingIOError:
            raise _busy() from None
        yield


def _busy() -> AreaBusy:
    return AreaBusy(
        "Another run holds the lock of this evidence area. Nothing was changed. Wait until it has finished, "
        "or stop it, and call this again."
    )


def _inside_public() -> SpecificationError:
    return SpecificationError(
        "[publish] evidence: expected a place outside of [publish] path, found one inside the public area, "
        "where readers could read it. Choose another place."
    )
