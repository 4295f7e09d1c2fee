"""The sentences of all measures of a release: what an attacker reaches, and what the protection cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from microguard.pipelines.evidence.evidence import Evidence


class Headlined(Protocol):
    """What the sentences use of a measure."""

    @property
    def name(self) -> str: ...
    @property
    def attacks(self) -> Any: ...
    @property
    def headline(self) -> Any: ...


def headline_sentences(evidence: Evidence, measures: Iterable[Headlined]) -> Iterator[str]:
    """Yield the sentences that whoever signs must read first, in the order of the measures."""
    for measure in measures:
        section = evidence.sections.get(measure.name)
        if section is not None:
            yield from measure.headline(section, evidence.release.k)


@dataclass(frozen=True, order=True)
class Attack:
    """What an attacker reaches: a share of the records, a sentence, and the measure that says so."""

    share: float
    sentence: str
    measure: str


def attacks_of(evidence: Evidence, measures: Iterable[Headlined]) -> list[Attack]:
    """Return what an attacker reaches, the worst first."""
    found = []
    for measure in measures:
        section = evidence.sections.get(measure.name)
        if section is not None:
            attacks = measure.attacks(section, evidence.release.k)
            found += [Attack(share, sentence, measure.name) for share, sentence in attacks]
    return sorted(found, reverse=True)
