"""What a measure is: one typed section of the evidence, with all that is done with it.

A measure says how it is taken, what numbers of it the gate looks at and by which limits, what of it a
steward may disclose, and how it is drawn. A new one is a file with a `Measure` in it, a row in
`pipelines.measures.registry`, a key of `[quality]` where it can be limited, and a page section
``pipelines/evidence/sections/<name>.html`` where the page is to show it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from schemas.requirements.requirement import MetricKey, Requirement
from schemas.specification.model import Specification

C = TypeVar("C")
S = TypeVar("S")


def _none(*_: Any) -> dict[Any, Any]:
    return {}


@dataclass(frozen=True)
class Measure(Generic[C, S]):
    """One measure of what is compared (C), and its section of the evidence (S).

    Attributes
    ----------
    name : str
        Of the section in ``quality.json``, and of its part of the page.
    section : type
        Of the section: a frozen dataclass, or a mapping or tuple of such; pydantic reads and describes it.
    take : comparison -> section or None
        None where it does not apply: the section is left out then.
    metrics : section, comparison -> numbers
        What the gate may look at.
    limits : specification -> requirements
        What `[quality]` asks of these numbers.
    disclosed : section -> numbers
        What ``publish.disclose`` may make public, by its name there.
    plots : section, k -> SVG texts
        Drawn for the page, by name.
    attacks : section, k -> pairs of share and sentence
        What an attacker reaches, as a share of the records, in plain words: the page begins with the worst.
    glance : section, k -> sentences
        What else whoever signs must read first.
    """

    name: str
    section: Any
    take: Callable[[C], S | None]
    metrics: Callable[[S, C], Mapping[MetricKey, float]] = _none
    limits: Callable[[Specification], Iterable[Requirement]] = _none
    disclosed: Callable[[S], Mapping[str, float]] = _none
    plots: Callable[[S, int], Mapping[str, Any]] = _none
    attacks: Callable[[S, int], Iterable[tuple[float, str]]] = _none
    glance: Callable[[S, int], Iterable[str]] = _none


@dataclass(frozen=True)
class Measured:
    """All measures of one release, taken.

    Attributes
    ----------
    sections : mapping of measure name to its section
    metrics : mapping of MetricKey to float
    disclosable : mapping of name to float
    """

    sections: Mapping[str, Any]
    metrics: Mapping[MetricKey, float]
    disclosable: Mapping[str, float]


def take_all(measures: Iterable[Measure[C, Any]], comparison: C) -> Measured:
    """Take measures in their order."""
    sections: dict[str, Any] = {}
    metrics: dict[MetricKey, float] = {}
    disclosable: dict[str, float] = {}
    for measure in measures:
        section = measure.take(comparison)
        if section is None:
            continue
        sections[measure.name] = section
        metrics |= measure.metrics(section, comparison)
        disclosable |= measure.disclosed(section)
    return Measured(sections, metrics, disclosable)
