"""Predecessor of a release: none, or the earlier releases of its series.

A single release has a plain `Predecessor`, whose methods change nothing. A series
(`pipelines.series`) overrides them; it is imported only if the specification names its kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Generic, TypeVar

from microguard.pipelines.evidence.evidence import Counts
from microguard.pipelines.intake.validate import Rejects, ValidatedInput
from microguard.pipelines.job import Job
from microguard.pipelines.product import Product
from microguard.pipelines.publication.stage import Staged
from microguard.schemas.requirements.requirement import MetricKey, Requirement
from microguard.schemas.specification.model import Specification

#: Module and class of the predecessor, by the kind of the series.
SERIES = {
    "append": "microguard.pipelines.series.append:Append",
    "register": "microguard.pipelines.series.register:Register",
}

D = TypeVar("D", bound=Product[Any, Any])


class NothingNew(Exception):
    """Raised if the release would equal the last one that its series published.

    Attributes
    ----------
    release_id : str
        Id of the current release.
    counts : dict
        Counts of the update.
    """

    def __init__(self, release_id: str, counts: dict[str, Any]) -> None:
        super().__init__(release_id)
        self.release_id, self.counts = release_id, counts


class Predecessor(Generic[D]):
    """Predecessor of a single release, which has none. The type D is the product that a series publishes."""

    #: Whether this release continues earlier releases and does not replace them.
    follows = False

    def identity(self, job: Job) -> Mapping[str, Any]:
        """Return the part of this release's identity that depends on earlier releases."""
        return {}

    def rejects(self, job: Job) -> Rejects | None:
        """Return a filter for records already published in this series; None if there are none."""
        return None

    def protect(self, product: D, job: Job, screened: ValidatedInput, release_id: str) -> Any:
        """Protect the accepted input, given the earlier releases.

        Raises
        ------
        NothingNew
            If the release would equal the last one.
        """
        return product.protect(job, screened, release_id)

    def audit(self, product: D, job: Job, protected: Any, staged: Staged) -> Mapping[MetricKey, float]:
        """Audit the staged release together with earlier ones; return the metrics for the gate."""
        return {}

    def requirements(self) -> Iterable[Requirement]:
        """Return the limits on the counts of `audit`."""
        return ()

    def counts(self, counts: Counts) -> Counts:
        """Add the numbers of records that the series holds back or retains to the counts."""
        return counts

    def manifest(self, release_id: str) -> Mapping[str, Any]:
        """Return the manifest entries that name the series."""
        return {}

    def write_state(self, folder: Path) -> None:
        """Write the state for the next release, and the counts, to the evidence in `folder`."""


def predecessor_of(specification: Specification, *, rebase: bool = False) -> Predecessor[Any]:
    """Return the predecessor of a release; the code of a series is imported only for releases of a series.

    Parameters
    ----------
    rebase : bool
        Whether a register is protected from scratch, which the user decides.
    """
    kind = specification.publish.series
    return Predecessor() if kind == "single" else resolve_name(SERIES[kind])(specification, rebase=rebase)
