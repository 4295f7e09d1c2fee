"""Measure: one typed section of the evidence, with its limits, plots and sentences.

A measure computes its section, names the numbers that the gate may limit and those that a steward may
disclose, and draws plots. To add a measure, add a module with a subclass of `Measure`, a row in
`pipelines.measures.registry`, a key of `[quality]` if the gate can limit it, and a page section
``pipelines/evidence/sections/<name>.html`` (or ``on_page = False``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from microguard.schemas.requirements.requirement import MetricKey, Requirement
from microguard.schemas.specification.model import Specification

C = TypeVar("C")
S = TypeVar("S")


class Measure(ABC, Generic[C, S]):
    """One measure of a comparison (C), and its section of the evidence (S).

    Attributes
    ----------
    name : str
        Name of the section in ``quality.json`` and on the page.
    section : type
        Type of the section: a frozen dataclass, or a mapping or tuple of such; pydantic reads and describes
        it.
    on_page : bool
        Whether the page has a section for the measure, from a template; else the page shows only the
        headline.
    """

    name: str
    section: Any
    on_page: bool = True

    @abstractmethod
    def compute(self, comparison: C) -> S | None:
        """Compute the section; return None if the measure does not apply, so that the section is omitted."""

    def metrics(self, section: S, comparison: C) -> Mapping[MetricKey, float]:
        """Return the numbers that the gate may limit."""
        return {}

    def limits(self, specification: Specification) -> Iterable[Requirement]:
        """Return the limits of `[quality]` on these numbers."""
        return ()

    def disclosed(self, section: S) -> Mapping[str, float]:
        """Return the numbers that ``publish.disclose`` may make public, by their names there."""
        return {}

    def plots(self, section: S, k: int) -> Mapping[str, Any]:
        """Draw the plots of the section for the page, as SVG texts by name."""
        return {}

    def attacks(self, section: S, k: int) -> Iterable[tuple[float, str]]:
        """Return the shares of records that attackers identify or infer, with sentences."""
        return ()

    def headline(self, section: S, k: int) -> Iterable[str]:
        """Return the sentences that the approver must read first."""
        return ()


@dataclass(frozen=True)
class Measured:
    """All measures of one release, computed.

    Attributes
    ----------
    sections : mapping of measure name to its section
    metrics : mapping of MetricKey to float
    disclosable : mapping of name to float
    """

    sections: Mapping[str, Any]
    metrics: Mapping[MetricKey, float]
    disclosable: Mapping[str, float]


def compute_all(measures: Iterable[Measure[C, Any]], comparison: C) -> Measured:
    """Compute several measures in their order."""
    sections: dict[str, Any] = {}
    metrics: dict[MetricKey, float] = {}
    disclosable: dict[str, float] = {}
    for measure in measures:
        section = measure.compute(comparison)
        if section is None:
            continue
        sections[measure.name] = section
        metrics |= measure.metrics(section, comparison)
        disclosable |= measure.disclosed(section)
    return Measured(sections, metrics, disclosable)
