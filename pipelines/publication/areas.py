"""Where a run may write: the public area and the evidence area, and who may do so when.

Everything that is not yet verified lies in the evidence area, in folders of mode 0700. The evidence
area also keeps the key of the release ids, the ledger and the lock; one run at a time holds it.
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

from microguard.pipelines.engine.exact_paths import exact_paths
from microguard.pipelines.engine.files import PRIVATE_FILE, create_once, damaged, private_folder
from microguard.pipelines.engine.lock import locked
from microguard.pipelines.publication.key import key_file, key_of, required_key
from microguard.pipelines.publication.public_area import PublicArea, public_area
from microguard.pipelines.publication.staging.folder import FolderStagingArea
from microguard.pipelines.publication.staging.staging_area import StagingArea
from microguard.pipelines.publication.stored_evidence import WORK, address_of, stored_evidence
from microguard.schemas.errors import MicroguardError, SpecificationError
from microguard.schemas.specification.model import Specification
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from microguard.pipelines.publication.storage.mirror import MirroredFolder

#: In the folder of a release: evidence and page. In the area: the page that lists them, and the ledger.
QUALITY, PAGE, INDEX, LEDGER = "quality.json", "report.html", "index.html", "ledger.jsonl"
_SESSION = "session-"
_TOKEN = re.compile(r"[0-9a-f]{32}")
_RUN = re.compile(rf"[0-9a-f]{{32}}|{_SESSION}\d+")


class AreaBusy(MicroguardError):
    """Another run holds the lock of this place."""

    exit_code = 1


@dataclass(frozen=True)
class Areas:
    """The two areas of one specification.

    Attributes
    ----------
    public : PublicArea
        Where readers look: releases and ``current.json``.
    evidence : Path
        Agency only: evidence per release, ledger, key, work folders.
    stored : MirroredFolder or None
        Where the evidence area is an object store: what keeps `evidence` there, which is a private copy.
    """

    public: PublicArea
    evidence: Path
    stored: MirroredFolder | None = None

    def __post_init__(self) -> None:
        evidence, public = self.evidence.resolve(), self.public.folder
        if public is not None and public.resolve() in (evidence, *evidence.parents):
            raise _inside_public()

    @classmethod
    def from_places(cls, public: str | Path, evidence: str | Path) -> Areas:
        """The areas at two places; the copy here of evidence in an object store is brought up to date."""
        area, address = public_area(public), address_of(evidence)
        if address is None:
            return cls(area, Path(evidence))
        if f"{address}/".startswith(f"{area.name}/"):
            raise _inside_public()
        stored = stored_evidence(address)
        with suppress(AreaBusy), hold(stored.folder):  # else a run of this machine has it up to date
            stored.fetch()
        return cls(area, stored.folder, stored)

    def record(self, release_id: str) -> Path:
        """Evidence folder of a release."""
        return self.evidence / release_id

    def record_place(self, release_id: str) -> str:
        """Where the evidence of a release is, for those who read it."""
        return str(self.record(release_id)) if self.stored is None else f"{self.stored.address}/{release_id}"

    @property
    def identity(self) -> str:
        """What tells this evidence area from all others: on two machines two may have one path."""
        if self.stored is not None:
            return self.stored.address
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
        """All that was ever published or withdrawn from here, one JSON object a line."""
        return self.evidence / LEDGER

    def work(self, release_id: str, purpose: str) -> Path:
        """A private work folder (``staging``, ``resume``, ``spark``) of a run, created where missing.

        Raises
        ------
        SpecificationError
            Where others than the owner can enter one that is there already.
        """
        private_folder(self.evidence)
        for folder in (
            self.evidence / WORK,
            self.evidence / WORK / release_id,
            self.evidence / WORK / release_id / purpose,
        ):
            if private_folder(folder).stat().st_mode & 0o077:
                raise SpecificationError(
                    f"The folder {WORK} of the evidence area can be entered by others than its owner, and "
                    "records that nobody has protected yet would lie in it. Set its mode to 0700, or choose "
                    "another [publish] evidence."
                )
        return folder

    def staging_area(self, release_id: str, purpose: str, folder: Path | None = None) -> StagingArea:
        """Where the tasks of a run write and read what nobody has verified yet.

        Parameters
        ----------
        folder : Path, optional
            Where frames are to lie in the end; the private work folder of this purpose without it.
        """
        folder = self.work(release_id, purpose) if folder is None else folder
        if self.stored is None:
            return FolderStagingArea(folder)
        from microguard.pipelines.publication.staging.part_lists import PartListStagingArea

        return PartListStagingArea(self.stored.storage, f"{WORK}/{release_id}/{purpose}", folder)

    def frame(self, spark: SparkSession, folders: Sequence[Path], schema: StructType) -> DataFrame:
        """The Parquet files of folders of the evidence area as it is kept, read by tasks."""
        if self.stored is not None:
            from microguard.pipelines.publication.staging.part_lists import fetched

            parts = [part for folder in folders for part in self.stored.parts(folder)]
            return fetched(spark, self.stored.storage, parts, schema)
        return exact_paths(spark).schema(schema).parquet(*map(str, folders))

    def forget_work(self, release_id: str) -> None:
        """Remove the work folders of a run, and its workplaces."""
        shutil.rmtree(self.evidence / WORK / release_id, ignore_errors=True)
        if self.stored is not None and not release_id.startswith(_SESSION):
            self.stored.forget(f"{WORK}/{release_id}")

    @contextmanager
    def session(self) -> Iterator[Path]:
        """Private scratch folder of one run, gone when it ends; to be entered with the lock held.

        What earlier runs left when they were killed (spilled records, the JVM's standard error) is
        removed first: with the lock held, none of them is alive.
        """
        for name in self.unfinished():
            if name.startswith(_SESSION):
                self.forget_work(name)
        name = f"{_SESSION}{os.getpid()}"
        try:
            yield self.work(name, "spark")
        finally:
            self.forget_work(name)

    def unfinished(self) -> list[str]:
        """Release ids (or session names) that still have work folders, sorted."""
        work = self.evidence / WORK
        return sorted(entry.name for entry in work.iterdir()) if work.is_dir() else []

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the evidence area, on this machine (see `hold`) and, in an object store, for all machines."""
        with ExitStack() as held:
            held.enter_context(hold(self.evidence))
            if self.stored is not None:
                try:
                    held.enter_context(self.stored.hold())
                except BlockingIOError:
                    raise _busy() from None
            yield

    def keep(self) -> None:
        """Make what the evidence area holds durable: to be called before anything rests on it."""
        if self.stored is not None:
            self.stored.keep()

    def key(self) -> bytes:
        """The secret that names releases; created with mode 0600 where it does not exist yet."""
        if self.stored is not None:
            return required_key(self.public.folder, "evidence")
        return key_of(key_file() or self.evidence / "key", self.public.folder)

    def release_id(self, identity: Mapping[str, Any]) -> str:
        """Opaque name of a release: a keyed hash of what it is made from (32 hexadecimal digits)."""
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hmac.new(self.key(), text.encode(), hashlib.sha256).hexdigest()[:32]


def areas_of(specification: Specification) -> Areas:
    """The areas of a specification: they can be written, and lie apart from those of others.

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
    return areas


def is_work(folder: Path) -> bool:
    """Whether a folder of the name `WORK` is one of ours: private, and with folders of runs alone."""
    private = not folder.stat().st_mode & 0o077
    return private and all(_RUN.fullmatch(entry.name) for entry in folder.iterdir())


@contextmanager
def hold(area: Path) -> Iterator[None]:
    """Hold the lock of an area; the system releases it when the process dies.

    Raises
    ------
    AreaBusy
        Where another run holds it.
    """
    with ExitStack() as held:
        try:
            held.enter_context(locked(private_folder(area), wait=False))
        except BlockingIOError:
            raise _busy() from None
        yield


def _busy() -> AreaBusy:
    return AreaBusy(
        "Another run is at work for this place and holds its lock. Wait until it has finished, or "
        "stop it, and call this again; nothing was changed."
    )


def _inside_public() -> SpecificationError:
    return SpecificationError(
        "[publish] evidence lies inside the public area. Readers of the data lake would see it: "
        "choose a place outside of [publish] path."
    )
