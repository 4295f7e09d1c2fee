"""A product: what is published, records or tables, as the run sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from microguard.pipelines.evidence.evidence import Counts
from microguard.pipelines.guarantees.guarantee import Guarantee
from microguard.pipelines.intake.read import Microdata
from microguard.pipelines.intake.validate import Rejects, ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.measure import Measure, Measured
from microguard.pipelines.publication.stage import Staged
from microguard.schemas.requirements.requirement import MetricKey, Requirement
from microguard.schemas.specification.model import Specification


class Written(Protocol):
    """What the files of a staged release say, counted by code that shares nothing with the method."""

    @property
    def records(self) -> int:
        """Records, or cells."""
        ...

    def metrics(self) -> Mapping[MetricKey, float]:
        """The numbers that the promise is judged by."""
        ...


class NothingNew(Exception):
    """Tonight's release would be the one that stands.

    Attributes
    ----------
    release_id : str
        The one that stands.
    counts : dict
        What the night found.
    """

    def __init__(self, release_id: str, counts: dict[str, Any]) -> None:
        super().__init__(release_id)
        self.release_id, self.counts = release_id, counts


P = TypeVar("P")
W = TypeVar("W", bound=Written)


class Product(Protocol[P, W]):
    """What is published: records, or tables. P is what its protection makes, W what its files say.

    Attributes
    ----------
    content : str
        ``records`` or ``table``.
    reader : Specification
        How the input is read.
    measures : tuple of Measure
        Of what `compare` gives, in the order of the page.
    guarantees : tuple of Guarantee
        What is promised, at least one; the run requires each of them, whatever `requirements` gives.
    limits : tuple of str
        What guarantees and method do not cover.
    """

    @property
    def content(self) -> str: ...
    @property
    def reader(self) -> Specification: ...
    @property
    def measures(self) -> tuple[Measure[Any, Any], ...]: ...
    @property
    def guarantees(self) -> tuple[Guarantee[Any], ...]: ...
    @property
    def limits(self) -> tuple[str, ...]: ...

    def follows(self, job: Job) -> Mapping[str, Any]:
        """What a release of a series follows, as a part of its identity; nothing where it stands alone."""
        ...

    def with_data_defaults(self, screened: ValidatedInput) -> Specification:
        """Return the specification with the defaults that depend on the input; called before `protect`."""
        ...

    def accept(self, microdata: Microdata) -> None:
        """Refuse an input that could not be published, before work is spent on it."""

    def rejects(self, job: Job) -> Rejects | None:
        """What marks records that earlier releases of the series stand in the way of, if anything."""
        ...

    def protect(self, job: Job, screened: ValidatedInput, release_id: str) -> P:
        """Protect the accepted input, or fail; `NothingNew` where there is nothing to publish."""
        ...

    def compare(self, screened: ValidatedInput, protected: P) -> Any:
        """What the measures are taken of."""

    def stage(self, job: Job, protected: P, release_id: str) -> Staged:
        """Write what is to be published to the private staging folder."""
        ...

    def read_back(self, job: Job, protected: P, staged: Staged) -> W:
        """Read the staged files and count."""
        ...

    def requirements(self, measured: Measured) -> Iterable[Requirement]:
        """That the files hold what was protected, and the limits of the gate."""
        ...

    def counts(self, screened: ValidatedInput, protected: P, written: W) -> Counts:
        """Records in and out."""
        ...

    def manifest(
        self, release_id: str, staged: Staged, written: W, disclosed: Mapping[str, float], successor: bool
    ) -> Mapping[str, Any]:
        """The public manifest, checksums excepted."""
        ...

    def write_annex(self, folder: Path, protected: P) -> None:
        """Write what the evidence holds beside ``quality.json``."""
