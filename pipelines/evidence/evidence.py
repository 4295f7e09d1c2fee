"""Evidence of a release: all measures and verdicts as typed sections, which only the agency can read.

``quality.json`` holds `Evidence`: the parts named there, and one section for each measure, under its name. A
section that does not apply is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from microguard.pipelines.engine.files import private_folder, read_json, write_atomically
from microguard.pipelines.gate.gate import Verdict
from microguard.pipelines.publication.areas import QUALITY
from pydantic import TypeAdapter


@dataclass(frozen=True)
class Description:
    """Identity of a release, and its source.

    Attributes
    ----------
    content : str
        ``records`` or ``table``.
    specification : dict
        The specification as read from its file.
    promise : str
        The guarantee of the release if it is published, as a sentence.
    limits : tuple of str
        Statements of what is not guaranteed.
    software : dict of package to version
        Packages that determine protected values; empty in evidence of earlier versions.
    snapshot : str or None
        Format and id of the snapshot that was read, if the input is a Delta or Iceberg table.
    """

    release_id: str
    name: str
    content: str
    version: str
    at: str
    public_area: str
    k: int
    seed: int
    fingerprint: str
    specification: dict[str, Any]
    promise: str
    limits: tuple[str, ...]
    software: dict[str, str] = field(default_factory=dict)
    snapshot: str | None = None


@dataclass(frozen=True)
class Counts:
    """Numbers of records (or cells) that were read, rejected by reason, suppressed and published; number of
    blocks.

    In a series, `waiting` units were read but are not published, and `ghosts` are retained records, which are
    published but were not read.
    """

    input: int
    rejected: dict[str, int]
    suppressed: int
    published: int
    blocks: int | None = None
    waiting: int = 0
    ghosts: int = 0


@dataclass(frozen=True)
class Evidence:
    """Complete content of ``quality.json``.

    Attributes
    ----------
    release : Description
    counts : Counts
    verdicts : tuple of Verdict
    stages : mapping of stage to seconds
    sections : mapping of measure name to its section
    """

    release: Description
    counts: Counts
    verdicts: tuple[Verdict, ...]
    stages: Mapping[str, float]
    sections: Mapping[str, Any] = field(default_factory=dict)


_PARTS: dict[str, TypeAdapter[Any]] = {
    "release": TypeAdapter(Description),
    "counts": TypeAdapter(Counts),
    "verdicts": TypeAdapter(tuple[Verdict, ...]),
    "stages": TypeAdapter(dict[str, float]),
}


def write_evidence(folder: Path, evidence: Evidence) -> None:
    """Write ``quality.json`` to the evidence folder of a release."""
    content = {
        name: adapter.dump_python(getattr(evidence, name), mode="json") for name, adapter in _PARTS.items()
    }
    for name, section in evidence.sections.items():
        content[name] = TypeAdapter(Any).dump_python(section, mode="json")
    private_folder(folder)
    write_atomically(folder / QUALITY, json.dumps(content, indent=2, sort_keys=True))


def read_evidence(folder: Path, sections: Mapping[str, Any]) -> Evidence:
    """Read the evidence folder of a release.

    Parameters
    ----------
    folder : Path
    sections : mapping of measure name to the type of its section
        Sections of measures that this version does not know are ignored.
    """
    content = read_quality(folder)
    parts = {name: adapter.validate_python(content[name]) for name, adapter in _PARTS.items()}
    known = {
        name: TypeAdapter(kind).validate_python(content[name])
        for name, kind in sections.items()
        if name in content
    }
    return Evidence(**parts, sections=known)


def read_quality(folder: Path) -> dict[str, Any]:
    """Read ``quality.json`` as plain JSON, without parsing its sections."""
    remedy = "Restore the evidence of the release from its back-up."
    return read_json(folder / QUALITY, f"{QUALITY} of release {folder.name}", remedy, *_PARTS)


class Headlined(Protocol):
    """Interface of a measure for functions that compose sentences."""

    @property
    def name(self) -> str: ...
    @property
    def attacks(self) -> Any: ...
    @property
    def headline(self) -> Any: ...


def headline_sentences(evidence: Evidence, measures: Iterable[Headlined]) -> Iterator[str]:
    """Yield the sentences that an approver must read first, in the order of the measures."""
    for measure in measures:
        section = evidence.sections.get(measure.name)
        if section is not None:
            yield from measure.headline(section, evidence.release.k)


@dataclass(frozen=True, order=True)
class Attack:
    """Share of the records that an attacker identifies or infers, with a sentence and the name of the
    measure.
    """

    share: float
    sentence: str
    measure: str


def attacks_of(evidence: Evidence, measures: Iterable[Headlined]) -> list[Attack]:
    """Return the shares of records that attackers identify or infer, largest first."""
    found = []
    for measure in measures:
        section = evidence.sections.get(measure.name)
        if section is not None:
            attacks = measure.attacks(section, evidence.release.k)
            found += [Attack(share, sentence, measure.name) for share, sentence in attacks]
    return sorted(found, reverse=True)
