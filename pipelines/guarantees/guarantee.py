"""Guarantee: the promise of a release, and the count on its published files that verifies it.

A release is published only if independent code counts its promise on the written files. Each module of this
package defines one guarantee: its statement, limits, requirements, count and manifest entry. A run builds
guarantees from the specification and counts on the staged files. ``microguard verify`` builds them from the
manifest alone (`pipelines.guarantees.registry`) and counts on the public files. Both use the same count. The
package imports no method, no specification and no engine except DuckDB.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from microguard.schemas.requirements.requirement import BROKEN, MetricKey, Requirement

Files = TypeVar("Files")


@dataclass(frozen=True)
class Count:
    """Counts of a guarantee on the published files.

    Attributes
    ----------
    metrics : mapping of MetricKey to float
        Metrics that the requirements of the guarantee limit.
    facts : mapping
        Statements about the files for the guarantee's entry in the manifest.
    detail : str
        The count in a sentence, for the output of ``verify``; it contains no value of a record.
    """

    metrics: Mapping[MetricKey, float]
    facts: Mapping[str, Any] = field(default_factory=dict)
    detail: str = ""


class Guarantee(ABC, Generic[Files]):
    """Promise that independent code can verify by counting on the published files.

    Attributes
    ----------
    name : str
        Standard term of the guarantee.
    """

    name: ClassVar[str]

    @property
    @abstractmethod
    def statement(self) -> str:
        """Return the promise as a sentence."""

    @property
    def limits(self) -> tuple[str, ...]:
        """Return the limits of the guarantee, one sentence each."""
        return ()

    @abstractmethod
    def requirements(self) -> tuple[Requirement, ...]:
        """Return the limits on those counts of `count` that need only public files; all of them are
        promised.
        """

    def private_requirements(self) -> tuple[Requirement, ...]:
        """Return the limits on those counts of `count` that need private data; all of them are promised."""
        return ()

    @abstractmethod
    def count(self, files: Files) -> Count:
        """Compute the counts of the promise on the written files."""

    @abstractmethod
    def manifest(self, count: Count) -> Mapping[str, Any]:
        """Return the entries of the public manifest that state the promise and its counts."""


def unmet(requirements: Sequence[Requirement], count: Count) -> list[Requirement]:
    """Return the requirements that the counts do not meet; a requirement without a count is not met."""
    return [
        each
        for each in requirements
        if each.key not in count.metrics or not each.met(count.metrics[each.key])
    ]


def promise(metric: str, variable: str = "", *, at_least: float | None = None) -> Requirement:
    """Build a promised requirement: at least `minimum`, or exactly zero if no minimum is given."""
    at_most = 0.0 if at_least is None else None
    return Requirement(MetricKey(metric, variable), BROKEN, at_least=at_least, at_most=at_most, promised=True)
