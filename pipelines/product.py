"""Interface of a product: the records or tables of one specification, as a run uses them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from microguard.pipelines.evidence.evidence import Counts
from microguard.pipelines.guarantees.guarantee import Guarantee
from microguard.pipelines.intake.read import Microdata
from microguard.pipelines.intake.validate import ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.measures.measure import Measure, Measured
from microguard.pipelines.publication.stage import Staged
from microguard.schemas.requirements.requirement import MetricKey, Requirement
from microguard.schemas.specification.model import Specification


class Written(Protocol):
    """Counts on the files of a staged release, by code that does not depend on the method."""

    @property
    def records(self) -> int:
        """Return the number of records or cells."""
        ...

    def metrics(self) -> Mapping[MetricKey, float]:
        """Return the metrics by which the guarantee is judged."""
        ...


P = TypeVar("P")
W = TypeVar("W", bound=Written)


class Product(Protocol[P, W]):
    """Content of a release, records or tables. P is the type of the protected data, W that of the counts.

    Attributes
    ----------
    content : str
        ``records`` or ``table``.
    reader : Specification
        The specification by which the input is read.
    measures : tuple of Measure
        Measures that are computed from the result of `compare`, in page order.
    guarantees : tuple of Guarantee
        At least one guarantee; a run requires each of them in addition to `requirements`.
    limits : tuple of str
        Statements of what guarantees and method do not cover, one sentence each.
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

    def with_data_defaults(self, screened: ValidatedInput) -> Specification:
        """Return the specification with the defaults that depend on the input; this is called before
        `protect`.
        """
        ...

    def accept(self, microdata: Microdata) -> None:
        """Refuse an input that could not be published, before any computation."""

    def protect(self, job: Job, screened: ValidatedInput, release_id: str) -> P:
        """Protect the accepted input."""
        ...

    def compare(self, screened: ValidatedInput, protected: P) -> Any:
        """Return the original and the protected records or cells, for the measures."""

    def stage(self, job: Job, protected: P, release_id: str) -> Staged:
        """Write the files to publish into the private staging area."""
        ...

    def read_back(self, job: Job, protected: P, staged: Staged) -> W:
        """Read the staged files back and count the guarantees on them."""
        ...

    def requirements(self, measured: Measured) -> Iterable[Requirement]:
        """Return the requirements on the staged files, and the limits of the gate."""
        ...

    def counts(self, screened: ValidatedInput, protected: P, written: W) -> Counts:
        """Count the records or cells that were read, rejected, suppressed and published."""
        ...

    def manifest(
        self, release_id: str, staged: Staged, written: W, disclosed: Mapping[str, float], successor: bool
    ) -> Mapping[str, Any]:
        """Return the public manifest without checksums."""
        ...

    def write_annex(self, folder: Path, protected: P) -> None:
        """Write additional evidence next to ``quality.json``."""
